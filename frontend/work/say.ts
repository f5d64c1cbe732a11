// The words of the work app's pages.
import { words } from "../shared/words";

const en = {
  models: "Models",
  "sign.title": "Sign in",
  username: "User name",
  password: "Password",
  "sign.wrong": "User name or password is wrong.",
  ended: "Your session has ended",
  "ended.text": "What you typed is still there. Sign in again to go on with it.",
  "ended.sign": "Sign in again",
  "ended.again": "Signed in again.",
  "signed.as": "Signed in as {name}",
  approvals: "Approvals",
  dashboard: "Dashboard",
  agents: "Agents",
  users: "People",
  connect: "MCP",
  audit: "Audit",
  palette: "Go to",
  "palette.key": "Go somewhere, search records, do something",
};

const de: Record<keyof typeof en, string> = {
  models: "Modelle",
  "sign.title": "Anmelden",
  username: "Benutzername",
  password: "Passwort",
  "sign.wrong": "Benutzername oder Passwort stimmt nicht.",
  ended: "Ihre Sitzung ist zu Ende",
  "ended.text": "Was Sie getippt haben, ist noch da. Nach neuem Anmelden geht es damit weiter.",
  "ended.sign": "Neu anmelden",
  "ended.again": "Wieder angemeldet.",
  "signed.as": "Angemeldet als {name}",
  approvals: "Zustimmungen",
  dashboard: "Übersicht",
  agents: "Agenten",
  users: "Personen",
  connect: "MCP",
  audit: "Protokoll",
  palette: "Gehe zu",
  "palette.key": "Irgendwohin gehen, Datensätze suchen, etwas tun",
};

export const say = words(en, de);
