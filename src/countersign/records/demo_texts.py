"""Made-up people, companies and notes for the demonstration, in several scripts."""

FIRST_NAMES = (
    "Amara", "Björn", "Chloé", "Dmitri", "Eilidh", "Farid", "Giulia", "Hannah", "Ines", "Jørgen", "Keiko", "Lukáš",
    "Maëlys", "Noor", "Oksana", "Priya", "Quentin", "Rosa", "Søren", "Tomás", "Ulla", "Vikram", "Wanjiru", "Xenia",
    "Yusuf", "Zofia",
)  # fmt: skip
LAST_NAMES = (
    "Adeyemi", "Bergström", "Castellanos", "Dvořák", "Eriksen", "Fontaine", "Grünwald", "Haddad", "Iyer", "Jankowski",
    "Kovačević", "Lindqvist", "Moretti", "Nakamura", "O'Sullivan", "Petrenko", "Quispe", "Rahman", "Şahin", "Tanaka",
    "Ueda", "Virtanen", "Wójcik", "Ximénez", "Yılmaz", "Zhao",
)  # fmt: skip
WHOLE_NAMES = (
    "山田 花子", "李 小龍", "Анна Каренина", "Мария Шевченко", "محمد الفاسي",
    "ليلى حداد", "רות לוי", "अनीता शर्मा", "김 민준", "Ελένη Παπαδοπούλου",
)  # fmt: skip
COMPANIES = (
    "Aurora Textiles", "Baltic Timber", "Cedar & Sons", "Delta Pumps", "Elbe Logistik", "Fjord Foods", "Garonne Vins",
    "Harbour Tools", "Iberia Solar", "Juniper Labs", "Kestrel Optics", "Loire Papier", "Mistral Energie", "Nordlys AS",
    "Olive Grove", "Pampas Leather", "Quartz Audio", "Ribe Ceramics", "Summit Rope", "Tatra Ski",
    "東京文具株式会社", "Волга Мебель",
)  # fmt: skip
CITIES = (
    ("Lyon", "69002", "FR"), ("Gdańsk", "80-001", "PL"), ("大阪", "530-0001", "JP"), ("Porto", "4000-123", "PT"),
    ("Київ", "01001", "UA"), ("Århus", "8000", "DK"), ("Nairobi", "00100", "KE"), ("Ōtautahi", "8011", "NZ"),
)  # fmt: skip
STREETS = ("Quai des Brumes", "Rope Lane", "Lindenallee", "Calle Mayor", "中央通り", "Harbour Road", "ulica Długa")
LEADS = (
    "New tills for {company}", "Spare parts, {company}", "Framework agreement with {company}", "Trial at {company}",
    "{company}: second site", "Renewal {company}", "{company} asks for a quote", "Training days, {company}",
)  # fmt: skip
NOTES = (
    "Met at the fair in Utrecht; wants an offer before the end of the quarter.",
    "Prefers to be called after four. Speaks French and Italian.",
    "前回の注文に満足。次回は色見本を持参する。",
    "Просит прислать договор на двух языках.",
    "يفضل التواصل عبر البريد الإلكتروني",
    "Budget approved by the board 🎉; the order goes through purchasing.",
    "Has a dog called Pixel – allergic colleague should not visit.",
    "Asked twice whether VAT is included. It is not.",
)
SUBJECTS = (
    "Printer jams after the update", "Invoice shows the wrong address", "Cannot sign in since Monday",
    "Delivery arrived damaged", "How do I export my data?", "Wrong colour delivered", "Battery drains over night",
)  # fmt: skip
PRODUCTS = (
    ("TILL-1", "Counter till", 89900), ("SCAN-2", "Hand scanner", 14950), ("ROLL-50", "Paper rolls, 50", 3990),
    ("SUPP-Y", "Support, a year", 120000), ("TRAIN-D", "Training day", 98000), ("CASE-L", "Carrying case, large", 5990),
)  # fmt: skip
LOST_REASONS = ("price", "went with another", "no budget this year", "no answer")
