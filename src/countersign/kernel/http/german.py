"""Maps the English texts of the plain pages to their German translations."""

from collections.abc import Mapping

GERMAN: Mapping[str, str] = {
    "Sign in": "Anmelden",
    "E-mail": "E-Mail",
    "Your e-mail": "Ihre E-Mail-Adresse",
    "Password": "Passwort",
    "User name": "Benutzername",
    "Password, 10 characters or more": "Passwort, mindestens 10 Zeichen",
    "Create an account": "Konto anlegen",
    "Forgot your password?": "Passwort vergessen?",
    "I have an account": "Ich habe ein Konto",
    "Back to sign-in": "Zurück zum Anmelden",
    "E-mail or password is wrong": "E-Mail-Adresse oder Passwort stimmt nicht",
    "Send the link": "Link senden",
    "Send it again": "Noch einmal senden",
    "We send you a link by e-mail. Open it to choose your password.": (
        "Wir senden Ihnen einen Link per E-Mail. Dort wählen Sie Ihr Passwort."
    ),
    "We send you a link by e-mail. Open it to choose a new password.": (
        "Wir senden Ihnen einen Link per E-Mail. Dort wählen Sie ein neues Passwort."
    ),
    "This is not an e-mail address like name@example.com.": "Das ist keine E-Mail-Adresse wie name@example.com.",
    "Check your e-mail": ("Sehen Sie in Ihre E-Mails"),
    "We have sent an e-mail to {email}. Open the link in it to continue; you can close this page.": (
        "Wir haben eine E-Mail an {email} gesendet. Öffnen Sie den Link darin; diese Seite können Sie schließen."
    ),
    "If {email} has an account here, we have sent an e-mail. Open the link in it to continue.": (
        "Wenn {email} hier ein Konto hat, haben wir eine E-Mail gesendet. Öffnen Sie den Link darin."
    ),
    "Nothing after a few minutes? Check your spam folder, or send it again.": (
        "Nach einigen Minuten nichts da? Sehen Sie im Spam-Ordner nach, oder lassen Sie es noch einmal senden."
    ),
    "This server has no mail server yet. Its operator can read the e-mail with “countersign mail”.": (
        "Dieser Server hat noch keinen Mailserver: Der Betreiber findet die E-Mail mit „countersign mail“."
    ),
    "Choose your password": "Wählen Sie Ihr Passwort",
    "Save and sign in": "Speichern und anmelden",
    "This link does not work": "Dieser Link funktioniert nicht",
    "It was already used, has expired or is incomplete. You can sign in or request a new one.": (
        "Er wurde schon benutzt, ist abgelaufen oder unvollständig. "
        "Sie können sich anmelden oder einen neuen anfordern."
    ),
    "This link no longer works": "Dieser Link funktioniert nicht mehr",
    "The store is already set up. Sign in with your e-mail and password.": (
        "Der Store ist schon eingerichtet. Melden Sie sich mit E-Mail-Adresse und Passwort an."
    ),
    "It is incomplete or older than a day. Restart the store: it prints a new link for the set-up.": (
        "Er ist unvollständig oder älter als ein Tag. Starten Sie den Store neu: Er gibt einen neuen Link aus."
    ),
    "It is incomplete or older than a day. Restart the service: it prints a new link for the set-up.": (
        "Er ist unvollständig oder älter als ein Tag. Starten Sie den Dienst neu: Er gibt einen neuen Link aus."
    ),
    "If you have set your password with it, sign in. Otherwise ask an administrator for a new link.": (
        "Wenn Sie damit Ihr Passwort gewählt haben, melden Sie sich an. Sonst bitten Sie einen Administrator um einen "
        "neuen Link."
    ),
    "Set up Countersign": "Countersign einrichten",
    "Organisation (a-z, 0-9, -)": "Organisation (a-z, 0-9, -)",
    "Organisation's name": "Name der Organisation",
    "Create": "Anlegen",
    "Ready": "Fertig",
    "The organisation is created. Sign in as {email}.": (
        "Die Organisation ist angelegt. Melden Sie sich als {email} an."
    ),
    "Sign in as {name}.": "Melden Sie sich als {name} an.",
    "Create the first administrator": "Ersten Administrator anlegen",
    "Welcome, {name}": "Willkommen, {name}",
    "Set password": "Passwort setzen",
    "Error: ": "Fehler: ",
    "More": "Mehr",
    "One moment": "Einen Moment",
    "Continuing to the page you asked for.": "Weiter zu der Seite, die Sie aufgerufen haben.",
    "Continue": "Weiter",
    "Too many requests": "Zu viele Anfragen",
    "Too many attempts for this address": "Zu viele Versuche für diese Adresse",
    "Try again in {n} seconds.": "Versuchen Sie es in {n} Sekunden noch einmal.",
    "Try again in {n} minutes.": "Versuchen Sie es in {n} Minuten noch einmal.",
    # Agents: the claim page, consent and connected agents.
    "Allow this agent?": "Diesen Agenten zulassen?",
    "Allow {name}?": "{name} zulassen?",
    "Allow": "Zulassen",
    "Deny": "Ablehnen",
    "Decline": "Ablehnen",
    "Tell the agent to ask for less": "Den Agenten um weniger bitten",
    "An agent wants to act for you at {store}. <strong>Allow it only if you started this yourself, just now.</strong> "
    "We never ask you to enter a code that you received by e-mail, chat or phone.": (
        "Ein Agent möchte bei {store} für Sie handeln. <strong>Lassen Sie ihn nur zu, wenn Sie das gerade selbst "
        "begonnen haben.</strong> Wir bitten Sie nie, einen Code einzugeben, den Sie per E-Mail, Chat oder Telefon "
        "erhalten haben."
    ),
    "The code your agent shows you": "Der Code, den Ihr Agent anzeigt",
    "After you allow it, this page shows six digits to give to your agent.": (
        "Wenn Sie ihn zulassen, zeigt diese Seite sechs Ziffern für Ihren Agenten."
    ),
    "It asks to:": "Er möchte:",
    "It will be able to:": "Er wird können:",
    "It can:": "Er kann:",
    "Your connected agents": "Ihre verbundenen Agenten",
    'You can disconnect it at any time on the page <a href="/auth/agents">Connected agents</a>.': (
        'Sie können ihn jederzeit auf der Seite <a href="/auth/agents">Verbundene Agenten</a> trennen.'
    ),
    "<strong>You cannot allow it:</strong> your account does not have these permissions:": (
        "<strong>Sie können ihn nicht zulassen:</strong> Ihrem Konto fehlen diese Berechtigungen:"
    ),
    "An owner of your organisation can make you a publisher. Or the agent asks for less.": (
        "Ein Inhaber Ihrer Organisation kann Sie zum Herausgeber machen. Oder der Agent verlangt weniger."
    ),
    "Your account": "Ihr Konto",
    "Agent name (not verified)": "Name des Agenten (nicht geprüft)",
    "Requested at": "Angefragt am",
    "From the address": "Von der Adresse",
    "a server": "ein Server",
    "Identity provider": "Identitätsanbieter",
    "This is the first agent for this account.": "Das ist der erste Agent für dieses Konto.",
    "This is the first request from {provider} for your account.": (
        "Das ist die erste Anfrage von {provider} für Ihr Konto."
    ),
    "Your code": "Ihr Code",
    "Give this code to your agent. It works once, for a few minutes.": (
        "Geben Sie diesen Code Ihrem Agenten. Er gilt einmal und wenige Minuten."
    ),
    "Do not share it with anyone else.": "Geben Sie ihn sonst niemandem.",
    "Not connected": "Nicht verbunden",
    "Nothing was connected. Your account does not have the permissions that the agent asked for.": (
        "Es wurde nichts verbunden. Ihrem Konto fehlen die Berechtigungen, die der Agent verlangt hat."
    ),
    "Connected": "Verbunden",
    "The agent can now act for you. You can close this page.": (
        "Der Agent kann jetzt für Sie handeln. Sie können diese Seite schließen."
    ),
    "Declined": "Abgelehnt",
    "The agent was declined. You can close this page.": (
        "Der Agent wurde abgelehnt. Sie können diese Seite schließen."
    ),
    "Wrong account": "Falsches Konto",
    "You are signed in as {email}, but the agent asked for another account.": (
        "Sie sind als {email} angemeldet, der Agent hat aber ein anderes Konto angefragt."
    ),
    "If you did not start this, close this page.": "Wenn Sie das nicht begonnen haben, schließen Sie diese Seite.",
    "Sign in with another account": "Mit einem anderen Konto anmelden",
    "Choose one of the two buttons.": "Wählen Sie eine der beiden Schaltflächen.",
    "Enter the code that your agent shows you.": "Geben Sie den Code ein, den Ihr Agent anzeigt.",
    "That is not the code your agent shows. After five wrong attempts the link stops working.": (
        "Das ist nicht der Code, den Ihr Agent anzeigt. Nach fünf falschen Versuchen gilt der Link nicht mehr."
    ),
    "{who} wants to act for you at {store}. You are signed in as {email}.": (
        "{who} möchte bei {store} für Sie handeln. Sie sind als {email} angemeldet."
    ),
    "<strong>{name}</strong>, a client of <strong>{organisation}</strong>,": (
        "<strong>{name}</strong>, ein Client von <strong>{organisation}</strong>,"
    ),
    "This has changed since you saw it. Check it again, then decide.": (
        "Das hat sich seither geändert. Bitte prüfen Sie es noch einmal und entscheiden Sie dann."
    ),
    "You will be redirected to {site}.": "Sie werden zu {site} weitergeleitet.",
    'You can take this back at any time on the page <a href="/auth/agents">Connected agents</a>.': (
        'Sie können das jederzeit auf der Seite <a href="/auth/agents">Verbundene Agenten</a> zurücknehmen.'
    ),
    "It asked for more. Your account does not have these permissions, so it will not be able to:": (
        "Er hat mehr verlangt. Ihrem Konto fehlen diese Berechtigungen, deshalb wird er nicht können:"
    ),
    "The request of <strong>{host}</strong> cannot be carried out, and nothing was allowed.": (
        "Die Anfrage von <strong>{host}</strong> lässt sich nicht ausführen. Es wurde nichts zugelassen."
    ),
    "Nothing was allowed": "Nichts wurde zugelassen",
    "Your account has none of the permissions that <strong>{host}</strong> asked for.": (
        "Ihr Konto hat keine der Berechtigungen, die <strong>{host}</strong> verlangt hat."
    ),
    "The client registered itself (<strong>not verified</strong>). Return only if you came from "
    "<strong>{site}</strong>.": (
        "Der Client hat sich selbst registriert (<strong>nicht geprüft</strong>). Kehren Sie nur zurück, wenn Sie von "
        "<strong>{site}</strong> kamen."
    ),
    "Return to {host}": "Zurück zu {host}",
    "A client without a name (<strong>not verified</strong>)": "Ein Client ohne Namen (<strong>nicht geprüft</strong>)",
    "A client that calls itself “{name}” (<strong>not verified</strong>)": (
        "Ein Client, der sich „{name}“ nennt (<strong>nicht geprüft</strong>),"
    ),
    "Your data goes to <strong>{site}</strong>.": "Ihre Daten gehen an <strong>{site}</strong>.",
    "Your data goes to a program on your own computer (<strong>{site}</strong>).": (
        "Ihre Daten gehen an ein Programm auf Ihrem eigenen Computer (<strong>{site}</strong>)."
    ),
    "This client registered itself, and its name is not verified. {access} Allow it only if you started this there, "
    "just now. You are asked each time.": (
        "Dieser Client hat sich selbst registriert, sein Name ist nicht geprüft. {access} Lassen Sie ihn nur zu, wenn "
        "Sie das gerade selbst dort begonnen haben. Sie werden jedes Mal gefragt."
    ),
    "Connected agents": "Verbundene Agenten",
    "No agents are connected to {email} at {store}.": "Mit {email} bei {store} sind keine Agenten verbunden.",
    "Agents and clients with access to {email} at {store}.": "Agenten und Clients mit Zugriff auf {email} bei {store}.",
    "Start page": "Startseite",
    "{what}, since {since}, last used {used}": "{what}, seit {since}, zuletzt verwendet {used}",
    "{what}, since {since}, not used yet": "{what}, seit {since}, noch nicht verwendet",
    "Disconnect": "Trennen",
    "Disconnect {name}": "{name} trennen",
    # Permissions.
    "see listings": "Produkte sehen",
    "publish and edit listings of your organisations": "Produkte Ihrer Organisationen anlegen und ändern",
    "see release histories": "Versionen sehen",
    "publish releases and upload files of your organisations": (
        "Versionen Ihrer Organisationen veröffentlichen und Dateien hochladen"
    ),
    "see your library: what you own here, and download it": "Ihre Bibliothek sehen und daraus herunterladen",
    "administer your organisations": "Ihre Organisationen verwalten",
    "The pages are not built": "Die Seiten sind nicht gebaut",
    "Games, apps and tools, for people and their agents.": "Spiele, Apps und Tools, für Menschen und ihre Agenten.",
}
