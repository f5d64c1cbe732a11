// The words of the work app's pages.
import { words } from "../shared/words";

const en = {
  models: "Models",
  "sign.title": "Sign in",
  username: "User name",
  password: "Password",
  "sign.wrong": "User name or password is wrong.",
  "signed.as": "Signed in as {name}",
  approvals: "Approvals",
  dashboard: "Dashboard",
  agents: "Agents",
  palette: "Go to",
};

const de: Record<keyof typeof en, string> = {
  models: "Modelle",
  "sign.title": "Anmelden",
  username: "Benutzername",
  password: "Passwort",
  "sign.wrong": "Benutzername oder Passwort stimmt nicht.",
  "signed.as": "Angemeldet als {name}",
  approvals: "Zustimmungen",
  dashboard: "Übersicht",
  agents: "Agenten",
  palette: "Gehe zu",
};

export const say = words(en, de);
