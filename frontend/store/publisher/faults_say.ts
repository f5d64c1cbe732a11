// The words of what is missing or wrong in a publisher's forms.
import { words } from "../../shared/words";

const en = {
  "faults.text": "Nothing was saved.",
  needed: "{label} is required",
  "needed.here": "This is required",
  "platforms.none": "Choose at least one platform",
  "products.unknown": "One of these addresses is no product of the organisation",
  "too.long": "At most {n} are allowed here",
  "not.so": "It cannot be written like this",
  "no.number": "This has to be a whole number",
};

const de: Record<keyof typeof en, string> = {
  "faults.text": "Es wurde nichts gespeichert.",
  needed: "{label} ist erforderlich",
  "needed.here": "Das ist erforderlich",
  "platforms.none": "Bitte mindestens eine Plattform wählen",
  "products.unknown": "Eine dieser Adressen ist kein Produkt der Organisation",
  "too.long": "Höchstens {n} sind hier erlaubt",
  "not.so": "So kann es nicht geschrieben werden",
  "no.number": "Das muss eine ganze Zahl sein",
};

export const say = words(en, de);
