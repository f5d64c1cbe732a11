"""What the plain pages say, in German, by what they say in English. A page whose title is not here stays English."""

from collections.abc import Mapping

TEXTS: Mapping[str, str] = {
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
    "We send you a link by e-mail. Behind it you choose your password.": (
        "Wir senden Ihnen einen Link per E-Mail. Dort wählen Sie Ihr Passwort."
    ),
    "We send you a link by e-mail. Behind it you choose a new password.": (
        "Wir senden Ihnen einen Link per E-Mail. Dort wählen Sie ein neues Passwort."
    ),
    "This is not an e-mail address like name@example.com.": "Das ist keine E-Mail-Adresse wie name@example.com.",
    "Look into your mail": "Sehen Sie in Ihre E-Mails",
    "A letter to {email} is on its way. Open the link in it to go on; this page can be closed.": (
        "Eine E-Mail an {email} ist unterwegs. Öffnen Sie den Link darin; diese Seite können Sie schließen."
    ),
    "If {email} has an account here, a letter is on its way. Open the link in it to go on.": (
        "Wenn {email} hier ein Konto hat, ist eine E-Mail unterwegs. Öffnen Sie den Link darin."
    ),
    "Nothing there after a few minutes? Look among unwanted mail, or send it again.": (
        "Nach einigen Minuten nichts da? Sehen Sie im Spam-Ordner nach, oder lassen Sie es noch einmal senden."
    ),
    "This server has no mail server yet: whoever runs it finds the letter with “countersign mail”.": (
        "Dieser Server hat noch keinen Mailserver: Der Betreiber findet die E-Mail mit „countersign mail“."
    ),
    "Choose your password": "Wählen Sie Ihr Passwort",
    "Save and sign in": "Speichern und anmelden",
    "This link does not work": "Dieser Link funktioniert nicht",
    "It was used already, has expired, or is not whole. You can sign in, or ask for a new one.": (
        "Er wurde schon benutzt, ist abgelaufen oder unvollständig. "
        "Sie können sich anmelden oder einen neuen anfordern."
    ),
    "This link no longer works": "Dieser Link funktioniert nicht mehr",
    "The store is set up already. Sign in with your e-mail and password.": (
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
    "The organisation is made. Sign in as {email}.": "Die Organisation ist angelegt. Melden Sie sich als {email} an.",
    "Sign in as {name}.": "Melden Sie sich als {name} an.",
    "Make the first administrator": "Ersten Administrator anlegen",
    "Welcome, {name}": "Willkommen, {name}",
    "Set password": "Passwort setzen",
    "Error: ": "Fehler: ",
    "More": "Mehr",
    "One moment": "Einen Moment",
    "Going on to the page you asked for.": "Weiter zu der Seite, die Sie aufgerufen haben.",
    "Continue": "Weiter",
    "Too many requests": "Zu viele Anfragen",
    "Too many attempts for this address": "Zu viele Versuche für diese Adresse",
    "Try again in {n} seconds.": "Versuchen Sie es in {n} Sekunden noch einmal.",
    "Try again in {n} minutes.": "Versuchen Sie es in {n} Minuten noch einmal.",
}
