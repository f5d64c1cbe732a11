"""Fleet: vehicles, and the trips that people book with them."""

import re

from countersign.declare import Date, Grant, Model, Module, Number, Ref, Role, Select, Text, check


class Vehicle(Model):
    """A vehicle of the fleet."""

    plate = Text(required=True, unique=True, max_length=12)
    state = Select("ready", "in_repair", required=True, default="ready")
    odometer = Number(min_value=0, label="Kilometres")

    @check("plate")
    def plate_has_a_district(plate: str) -> str | None:
        """Require the form of a number plate."""
        return None if re.fullmatch("[A-Z]{1,3}-[A-Z0-9]{1,8}", plate) else "must be like W-12345X"


class Trip(Model):
    """A trip that a person has booked."""

    vehicle = Ref("vehicle", required=True)
    driver = Text(required=True, personal="PERSON")
    licence = Text(personal="LICENCE", help="The number of the driving licence")
    first_day = Date(required=True)
    last_day = Date(required=True)

    @check("first_day", "last_day")
    def days_are_in_order(first_day: str | None, last_day: str | None) -> str | None:
        """Require that a trip does not end before it begins."""
        return "must be in this order" if first_day and last_day and last_day < first_day else None

    @check("licence")
    def licence_has_eight_digits(licence: str) -> str | None:
        """Require eight digits."""
        return None if re.fullmatch("[0-9]{8}", licence) else "must have eight digits"


module = Module(
    "fleet",
    version="1.0.0",
    models=(Vehicle, Trip),
    roles=(
        Role(
            "fleet_manager",
            Grant(model="vehicle", commands="*", clear="*", write="*"),
            Grant(model="trip", commands="*", clear="*", write="*"),
        ),
    ),
)
