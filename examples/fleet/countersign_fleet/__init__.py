"""Fleet: vehicles, and the trips that people book with them."""

import re

from countersign.declare import Date, Grant, Model, Module, Number, Ref, Role, Select, Text, Work, check, on


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
    last_day = Date(help="If left out, the first day")
    odometer = Number(min_value=0, label="Kilometres at the end")

    @check("first_day", "last_day")
    def days_are_in_order(first_day: str | None, last_day: str | None) -> str | None:
        """Require that a trip does not end before it begins."""
        return "must be in this order" if first_day and last_day and last_day < first_day else None

    @check("licence")
    def licence_has_eight_digits(licence: str) -> str | None:
        """Require eight digits."""
        return None if re.fullmatch("[0-9]{8}", licence) else "must have eight digits"

    @on("create", "update:vehicle")
    async def vehicle_is_ready(work: Work) -> None:
        """Refuse trips with a vehicle that is in repair."""
        vehicle = await work.get("vehicle", work.now["vehicle"])
        if vehicle["state"] != "ready":
            work.refuse("the vehicle is in repair")

    @on("create")
    async def trip_is_one_day(work: Work) -> None:
        """Set the last day of a trip that has none."""
        if work.now["last_day"] is None:
            await work.change(last_day=work.now["first_day"])

    @on("update:odometer")
    async def vehicle_has_been_driven(work: Work) -> None:
        """Write the kilometres of the trip into its vehicle."""
        await work.update("vehicle", str(work.now["vehicle"]), odometer=work.now["odometer"])


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
