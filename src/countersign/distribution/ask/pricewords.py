"""The words for what costs something and what does not."""

from countersign.distribution.ask.phrasetable import said

FREE = said(
    "free|free of charge|for free|gratis|free to play|free to download|free to use|at no "
    "cost|at no charge|for nothing|"
    "without charge|free for everyone|free for anyone|downloadable for free|available for "
    "free|cost free|cost nothing|"
    "costs nothing|downloadable by anyone|free downloads|offered for free|free as in beer|freely available|"
    "available free of charge|downloadable without paying|without paying|without payment|without buying|"
    "without buying it|without buying them|without paying for it|without paying for them|without paying anything|"
    "without paying a cent|without spending money|without spending anything|without cost|without a purchase|"
    "without purchase|without purchasing|without owning|without owning it|without owning them|at zero cost|"
    "given away|given away for free|given away free|being given away|handed out for free|at no price|"
    "for zero cost|no cost|no charge|with no cost|free of cost|without having to pay|without having to buy|"
    "without having to pay for it|without having to pay for them|without having to own|without having to buy them|"
    "without having to buy it|without having to own them"
)
_PAYING = (
    (
        "pay pay_for paying paying_for buy buying bought be_bought purchase purchased be_purchased be_owned owned own "
        "be_paid be_paid_for pay_money pay_money_for spend_money_on"
    )
    .replace("_", "\0")
    .split()
)
_BEFORE = [
    "",
    "before downloading",
    "before downloading it",
    "before downloading them",
    "before i can download it",
    "before i download it",
    "before i can download them",
    "before i can get it",
    "before i can use it",
    "before i can play it",
    "before you can download it",
    "before you can download them",
    "before one can download them",
    "before one can download it",
    "to download it",
    "to download them",
    "to get it",
    "to get them",
    "to use it",
    "to use them",
    "to play it",
    "to play them",
    "before using it",
    "before playing",
    "before using",
    "before getting it",
    "before i can install it",
    "first",
    "with money",
]
PAID = said(
    "paid|entitled|cost money|costs money|for sale|require a purchase|requires a purchase|need to be bought|"
    "must be bought|have to be bought|commercial|require an entitlement|requires an entitlement|paid for|"
    "need an entitlement|needs an entitlement|has to be bought|payware|for purchase|not free|cost anything|"
    "costs anything|cost something|costs something|purchase only|non free|cost me anything|cost me money|costs "
    "me money|cost me something|costs me anything|cost me|"
    "cost us anything|cost you anything|cost a cent|cost me a cent|cost a thing|cost a penny|require payment|"
    "requires payment|to pay for|"
    "to buy|to own|to purchase"
) | said(
    "|".join(
        f"{lead} {verb} {tail}".replace("\0", " ").strip()
        for lead in ("", "need to", "needs to", "must", "got to", "required to", "must be", "need")
        for verb in _PAYING
        for tail in _BEFORE
    )
)
