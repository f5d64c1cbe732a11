"""What words mean in a question, and how a question is split into words.

One table has a line for each meaning, with the words and phrases that have it. `slot value` puts a value into a slot
of the filter (`a|b`: any of them); the other classes are in `conditions.py`. A phrase is matched before the words in it.
"""

import re
import unicodedata
from typing import NamedTuple

from countersign.distribution.catalog.words import distance, shortened
from countersign.kernel.normalization import normalized

MAX_PHRASE = 5
"""Words of a phrase at most."""
MAX_TOKENS = 400
MAX_RESPELLED = 20
"""Letters of a word that is looked for with a typing error in it."""
_TOKEN = re.compile(
    r"""(?P<quoted>"[^"]{1,100}"|“[^”]{1,100}”|«[^»]{1,100}»|`[^`]{1,100}`|(?<!\w)'[^']{1,100}'(?!\w))
    |(?P<number>v?\d[0-9A-Za-z]*(?:[._+:/-][0-9A-Za-z]+)*)
    |(?P<joint>(?<=[^\W_])[-_](?=[^\W_]))
    |(?P<minus>(?<!\S)-(?=[^\W\d_]))
    |(?P<word>[^\W\d_][^\W_]*(?:['’.][^\W_]+)*)
    |(?P<mark>!=|<=|>=|&&|\|\||[,;:?!()\[\]{}&=<>|$€£\#/+.-])""",
    re.VERBOSE,
)
_KEY_WORD = re.compile(r"[^\W_]+")
_IDENTIFIER = re.compile(r"[a-z]+(?:_[a-z]+)+")
_QUOTED_SENTENCE = re.compile(r'["“]([^"“”]{1,400}[?!.][^"“”]{0,100})["”]')
"""What somebody says, and no name: read without its quotation marks."""
_FOLDED = str.maketrans({"’": "'", "‘": "'", "–": "-", "—": "-", "\u00a0": " "})
_WHOLE = frozenset(str.split("what's who's where's when's it's that's there's how's let's he's she's here's"))


class Token(NamedTuple):
    """A word of the question: as it is compared, and where it stands. The possessive is left out of both."""

    word: str
    start: int
    end: int
    is_quoted: bool = False
    is_mark: bool = False


def tokens_of(question: str) -> list[Token]:
    """The tokens of a question, the first four hundred. A compound of a hyphen is its words."""
    found: list[Token] = []
    text = _QUOTED_SENTENCE.sub(r" \1 ", question.translate(_FOLDED))
    for match in _TOKEN.finditer(text):
        if len(found) >= MAX_TOKENS:
            break
        start, end = match.span()
        if match["quoted"]:
            found += _quoted(match[0], start, end, text[end : end + 1])
        elif match["word"]:
            found.append(_word(match[0], start, end))
        elif match["minus"]:
            found.append(Token("not", start, end))
        elif not match["joint"]:
            found.append(Token(match[0].lower(), start, end, is_mark=match["mark"] is not None))
    return found[:MAX_TOKENS]


def _quoted(text: str, start: int, end: int, following: str) -> list[Token]:
    """A quoted text; the words of a quoted key (`"published since": …`) and of an identifier (`"list_releases"`)."""
    if following == ":" or _IDENTIFIER.fullmatch(text[1:-1]):
        return [Token(folded(word), start + 1, end - (following != ":")) for word in _KEY_WORD.findall(text)]
    return [Token(folded(text[1:-1]), start + 1, end - 1, is_quoted=True)]


def _word(text: str, start: int, end: int) -> Token:
    word = folded(text)
    is_possessive = word.endswith("'s") and word not in _WHOLE
    return Token(word[:-2], start, end - 2) if is_possessive else Token(word, start, end)


def folded(text: str) -> str:
    """The text as words are compared: in lower case, without accents."""
    return "".join(each for each in normalized("NFKD", text) if not unicodedata.combining(each)).lower()


_TABLE = """
kind game            : game, games, videogame, videogames, video game, video games, gaming
kind app             : app, apps, application, applications
kind tool            : tool, tools, utility, utilities, tooling
platform windows     : windows, win, win10, win11, win64, windows 10, windows 11, windows pc, windows pcs, pc, pcs, windows laptop
platform macos       : macos, mac, macs, mac os, os x, osx, macbook, macbooks, imac, macintosh, apple computer, mac mini
platform linux       : linux, ubuntu, debian, fedora, gnu/linux, arch linux, steam deck, tux
platform android     : android, androids, android phone, android phones, android tablet, android device, android devices
platform ios         : ios, iphone, iphones, ipad, ipads, ipod, apple phone
platform web         : web, browser, browsers, web browser, web browsers, online in a browser, in-browser, webapp, chromebook
platform android|ios : phone, phones, mobile, mobiles, smartphone, smartphones, handset, tablet, tablets, mobile phone, mobile phones, mobile devices, mobile device, cell phone, handheld
platform windows|macos|linux : desktop, desktops, desktop computer, desktop computers, desktop pc
channel stable       : stable, stables, stable channel, production ready, finished
channel beta         : beta, betas, beta channel, public beta, beta test
channel nightly      : nightly, nightlies, nightly channel
channel alpha        : alpha, alphas, alpha channel
channel beta|nightly|alpha : prerelease, prereleases, pre-release, pre-releases, preview, previews, test version, test versions, testing version
access free          : free, free of charge, for free, for nothing, costs nothing, cost nothing, costing nothing, costs no money, no cost, gratis, without paying, without buying, without payment, at no cost, at no charge, no charge, zero cost, freeware, don't have to pay, do not have to pay, not have to pay, without having to pay, without a purchase, without buying it, does not cost anything, doesn't cost anything, doesn't cost me anything, won't cost me anything, won't cost anything, don't cost anything, doesn't cost, don't cost a penny, don't have money, dont have money, have no money, no budget, mustn't cost anything, must not cost anything, given away, giving away, cost a penny, costs me nothing, no money, costless
access entitled      : paid, entitled, to buy, have to buy, need to buy, must buy, commercial, purchase, purchased, to purchase, to own, for sale, for money, costs money, cost money, pay for, to pay, paying, be bought, buyable, must be bought, need a purchase, requires purchase, cost something, costs something, cost anything, one must buy, one has to buy, one has to own, has to be bought, has to be owned, entitlement, entitlements, not free, charge, a charge, fee, a fee, not free of charge, buy, cost anything, to be bought
license open         : open source, open-source, opensource, foss, oss, libre, free software, openly licensed
license none         : no license, no licence, without a license, without a licence, without license, without licence, unlicensed, no stated license, no stated licence
license Proprietary  : proprietary, closed source, closed-source, closed, all rights reserved
answer count         : how many, number of, count, count of, total number, how much, how many different, amount of, total of, quantity of, how often, how many times
answer compare       : compare, comparison, vs, vs., versus, difference between, differences between, differ, compared, compares, difference of, difference, how do they differ, side by side, up against, next to, what sets
find releases        : version number, release, releases, version, versions, build, builds, update, updates, patch, patches, changelog entries, which number, what number, version numbers, vershun
find publishers      : publisher, publishers, studio, studios, company, companies, vendor, vendors, organisation, organisations, organization, organizations, developers, makers, maker, supplier, suppliers, firms, firm, orgs, org, who makes, who publishes, brands, which team, what team
find products        : product, products, program, programs, programme, programmes, software, title, titles, package, packages, portfolio, catalogue entries
find any             : thing, things, stuff, anything, everything, something, item, items, entries, goods, range, lineup, line-up
field org            : who made, who makes, who is behind, who stands behind, company behind, people behind it, who publishes, who published, who created, who develops, who developed, who wrote, who owns, made by whom, publisher of, maker of, makers of, developer of, developers of, developed, who did, people who did, people who made, people behind, responsible for, whose, author, creator, creators, developed by whom, by whom, who built, who sells, who puts out, who put out, who brought out
field platforms      : platform, platforms, operating system, operating systems, os, oses, devices, device, systems, run on, runs on, available on, where can i, what can i, what does it run on, which computers, works on
field channels       : channel, channels, release channel, release channels, tracks
field tags           : tag, tags, tagged, labels, genre, genres, categories, category, topics, keywords, labelled, tagged with, tagged as
field license        : licence, license, licences, licenses, licensed, licensing, licence terms, license terms, under which terms, spdx
field access         : access, pricing model, business model
field versions       : history, version history, release history, version numbers
field notes          : what changed, different, what would i get, what will i gain, what do i get, what's new, what is new, what was new, changes, change, changed, changelog, release notes, patch notes, notes, news, what was fixed, fixes, fixed, fix, added, adds, add, bring, brought, brings, improved, improvements, what was added, what was in, what is in, what's in, introduce, introduced, introduces, features, contain, contains, contained, contents, include, includes, what is included, what's included, new in, differences, said, say, says
field published_at   : when, what date, which date, release date, what day, on what day, which day, publication date, published_at, date of, dated, date, what year, which year, in what year, in which year, which month, what month, how old, how long ago, timestamp
field artifacts      : file, files, filename, filenames, checksum, checksums, sha256, hash, hashes, download size, artifact, artifacts, installer, installers, file size
field homepage       : homepage, website, web site, home page, url, site, web address
field kind           : what kind, which kind, what type, what sort of thing, kind, type, kinds, sort
order newest         : newest, latest, most recent, recent, most recently, recently, most recently updated, most recently released, most recently published, last, current, currently, up-to-date, up to date, freshest, most current, youngest, lastest, newly, brand new, just released, more recent, most recently, more recently
sort newest          : newest first, latest first, most recent first, newest to oldest, descending, desc, reverse chronological
sort oldest          : oldest first, earliest first, chronological, chronologically, ascending, asc, oldest to newest
order oldest         : oldest, earliest, first, very first, original, initial, inaugural, earlier, came out earlier, oldest first release
order releases       : most releases, has had the most releases, most versions, most updates, most often updated, most frequently updated, updated most often, most builds, the most often, more releases, more updates, more versions, has the most releases, have the most releases, had the most releases, has the most updates, has the most versions, published the most releases, the most releases, the most updates, the most versions
order platforms      : most platforms, most systems, most operating systems, most devices, widest platform support, more platforms, more systems, has the most platforms, have the most platforms, has the most systems, supports the most platforms, runs on the most platforms, the most platforms
order products       : makes the most, make the most, publishes the most, published the most, has the most, have the most, with the most, offers the most, most products, most titles, biggest catalogue, largest catalogue, biggest catalog, longest list, largest number, most prolific, biggest range, biggest of your publishers, biggest publisher, largest publisher, largest publishers, biggest publishers, biggest of, who makes the most, who publishes the most, who has the most, who made the most, who offers the most, makes most, publishes most, has most
order title          : alphabetical, alphabetically, a-z, by title, by name, alphabetical order, sorted by title
when first           : for the first time, first time, debuting, make its debut, debut, debuted, debuts, first released, first published, first appeared, first appear, first come out, first came out, launched, launch, premiered, premiere, introduced in, new games, new apps, new tools, first release, first version, since when, newcomers, newcomer
when last            : last updated, last released, last published, last touched, latest release was, last update was
when any             : released, published, came out, come out, comes out, updated, shipped, ship, put out, appeared, appear, issued, brought out, new version, bring out, dropped, publish, update, coming out, gone out, went out, pushed, out, landed, arrived, uploaded, refreshed, touched, made available, ships, releasing, got, saw, see the light of day
not .                : do without, go without, not only, not, no, dont, doesnt, isnt, arent, cant, havent, hasnt, didnt, wont, "!=", without, except, excluding, exclude, excludes, never, neither, nor, isn't, aren't, doesn't, don't, didn't, hasn't, haven't, wasn't, can't, won't, cannot, lacks, lack, lacking, apart from, other than, besides, minus, but not, except for, and not, none, aside from, rather than, missing, avoid, avoids, non, n't, free of, hate, weren't, couldn't, hadn't, shouldn't, outside of, ignoring, leave out, leaving out, skip, nothing but not, all but, everything but, anything but, devoid of, sans, waiting for, still waiting for, yet to, yet to see, instead of, anyone but, anybody but, everyone but, someone other than, anyone other than, no one but, nothing to do with, everybody but, out of, to the exclusion of, exclusion of, exclusive of, leaving, with nothing, has nothing, have nothing, nothing, to exclude, exclude the, other systems than
denied .             : excluded, left out, omitted, not included, not counted, aside, excepted
included .           : included
only .               : only, exclusively, exclusive, just, solely, nothing but, nowhere else, alone, no other, no others, nothing else, purely
or .                 : or, either, "|", "||", and/or, as well as either, any of, at least one of, one of
and .                : and, n, both, also, plus, "&", "&&", as well as, too, together with, along with, all of
but .                : but, wich, however, though, although, yet, while, whereas, that, which, who, whose, where
answer exists        : confirm that, confirm whether, confirm if, verify that, verify whether, verify if, check whether, check if, is it true, is it correct, is it right, is it the case, is it accurate, is it a fact, true that, correct that, right that, is that true, is that correct, is that right, is it truth, am i right, or not, exists, yes/no, yes or no, true or false, true/false
when none            : nothing new, no news, untouched, abandoned, dormant
skip .               : i lack, we lack, still lack, i am missing, we are missing, i'm missing, we're missing, whatever the channel, whatever channel, whichever channel, both months included, both days included, both included, both ends included, inclusive, any channel, in any channel, in whatever channel, no matter which channel, regardless of channel, all kinds of, any kind of, every kind of, all sorts of, of any kind, of all kinds, all kinds, the same for, same for, same thing for, same question for, all in all, all told, for the record, out of interest, out of curiosity, coming back, without limitation, including but not limited to, without limit, no commentary, no comments, no explanation, no prose, no text, no markdown, names only, titles only, ids only, slugs only, number only, just the number, only the number, just the name, just the names, until now, up to now, so far, by now, till now, as of now, until today, tell me more, more about, more information, more details, any more, know more, once more, most of, mostly, before i can, before downloading, before using it, before using, to date, for the file, by the way, in the file, of all, as of today, in a sentence, in short, in brief, in one sentence, something else, see the light
polite .             : can i have, can i get, could i have, could i get, may i have, might i have, can we have, can we get, could we have, could we get, can u, could u, would u, is it possible, can you, could you, would you, will you, do you know, do you happen, can i see, could i see, may i, is there a list, are you able
guard .              : anything besides, something besides, anything other than, something other than, anything apart from, something apart from, anywhere but, any besides, any other than, outdated, out of date, superseded, am i behind, obsolete, preceded, precedes, just before, just after, from different, by different, different makers, half, why, one platform, a single platform, only one, just one, no other kind, right before, right after, than, unless, instead, less, fewer, least, average, median, sum, twice, percent, percentage, ratio, share, similar, alternative, alternatives, alternative to, games like, apps like, something like, anything like, tools like, resembling, replace, replacement, newer, older, higher, lower, bigger, smaller, longest, shortest, second, third, previous, before, after, next, every other, consecutive, majority, every platform, all platforms, each platform, longest ago, at the same time, every system, all systems
same .               : same, identical, the same, share, shares, shared, sharing, alike in
each .               : per, for each, by each, each, for every, broken down by, grouped by, group by, breakdown, break down, breakdown by, split by, per each
all .                : what kind of thing, what kind of program, tell me about, something about, more about, about it, never heard of, describe, what is, what's, whats, what are, details, details of, info, information, explain, overview, summary, summarise, summarize, gist of, gist, introduce me to, heard of, do, does, what for, good for, description, purpose, sort of
titled .             : titled, in the title, in its title, in their title, in their titles, in its name, in their name, in their names, in the name, in the titles, title contains, titles containing, title includes, called, named, title with, titles with, has title, in title, word in the title, whose title, whose titles, whose name, whose names
"""

_IGNORED = """
articles and pronouns         : a, an, the, im, ive, u, ur, r, it, its, it's, i, me, my, mine, we, us, our, you, your, yours, he, she, they, them, their, here, there, this, these, those, what, whom, how, i'm, i'd, i've, i'll, you've, you'd, we've, that's, there's, who's, where's, how's, what've, whether, he's, she's, they're, we're, it'll, does're, if, as, then, any, some, all, every, one, ones, another, other, others, someone, anybody, anyone, people, person
prepositions                  : of, to, in, on, at, for, by, from, with, into, onto, up, via, under, within, about, upon, against, across, through, among, between, following, below, above, regarding, concerning, together, according, based, respect, relation, terms
verbs of being and asking     : is, are, was, were, be, been, being, am, did, has, have, had, having, can, could, will, would, should, may, might, shall, must, let, let's, show, list, lists, listed, listing, find, give, get, gets, tell, search, look, looking, looks, see, seen, want, wants, wanted, need, needs, needed, know, choose, choice, pick, picks, select, selected, options, option, identify, hear, heard, mention, mentions, mentioned, mentioning, mean, means, meant, decide, check, checking, confirm, verify, try, trying, tried, display, return, print, enumerate, fetch, query, request, state, states, stated, answer, answers, reply, respond, response, result, results, output, question, wondering, wonder, curious, name, names, go, goes, going, come, comes, came, happen
verbs of publishing and using : run, runs, running, work, works, working, use, uses, used, using, play, plays, played, playing, playable, make, makes, making, publishes, publishing, offer, offers, offered, offering, offerings, support, supports, supported, supporting, create, created, develop, write, wrote, written, provide, provides, provided, sell, sells, carry, carries, carried, hold, holds, put, puts, own, owns, owned, install, installed, download, downloaded, downloadable, built, distributed, measured, applies, apply, bear, bears, qualify, fits, fit, belong, exist, existing, keep, reach, reached, hit, left, gain, missed, live, lives, grab, like, likes, love, loves, prefer, allowed, supposed, possible, able, available, avaliable, believe, thinking, interested
reporting and formality       : theirs, ours, yours, mine, real, actual, asks, asking, went, section, altogether, overall, combined, sirs, pull, pulled, quick, disclose, discloses, assert, asserts, claim, claims, claimed, allege, alleges, swear, swears, insist, insists, reckon, reckons, think, thinks, thought, told, telling, advise, advised, learn, grateful, appreciate, appreciated, obliged, enquire, inquire, enquiry, inquiry, wish, require, requires, furnish, supply, forward, present, itemise, itemize, tabulate, outline, cite, quote, note, noted, clarify, ascertain, determine, establish, point, walk, help, helping, assist, inform, notify, brief, remind, suppose, hope, hoping, read, correct, accurate, truth, subject, pursuant, herein, thereof, hereto, aforementioned, said, counsel, attorney, matter, purposes, purpose, annex, audit, order, tender, bid, procurement, compliance, diligence, due, schedule, inventory, register, roster, rundown, compilation, exhaustive, comprehensive, exact, short, concise, single, integer, json, string, csv, format, bullet, bullets, bulleted, markdown, plain, text, task, job, todo, instruction, instructions, system, assistant, agent, bot, sentence, sentences, commentary, explanation
work and home                 : story, piece, roundup, feature, editor, deadline, readers, headline, interview, press, coverage, regression, ticket, testers, tester, checklist, sprint, server, servers, fleet, rollout, deploy, deploying, deployment, ansible, hosts, host, production, maintenance, window, tonight, weekend, afternoon, couch, grandma, grandpa, granny, cousin, sister, brother, sis, mum, mom, dad, mother, father, teacher, class, school, homework, nephew, niece, uncle, aunt, roommate, bored, tired, excited, sorry, urgent, quick, quickly
courtesy and fillers          : please, kindly, thanks, thank, hi, hello, hey, so, well, ok, okay, now, really, very, quite, actually, still, already, ever, even, e.g., etc, i.e., regards, cheers, dear, sir, madam, hereby, urgently, asap, pls, plz, plss, gimme, wanna, gonna, gotta, lemme, yo, dude, bro, m8, mate, hmm, um, uh, oh, lol, haha, ah, yes, anyway, basically, literally, simply, specific, particular, given, certain, various, respective, respectively, exactly, precisely, right, nevertheless, nonetheless, pleeease, far, long, many, much, bit, lot, lots, more, most, new, main, total, alike, present, true
nouns of stores and askers    : made, such, types, catalog, catalogue, store, shop, collection, database, whole, entire, complete, full, user, users, customer, customers, client, clients, son, daughter, boy, girl, boys, girls, kid, husband, wife, parent, parents, boss, team, teams, colleague, colleagues, office, earth, figure, figures, page, column, newsletter, article, intro, report, his, her, hers, say, says, said, doing, receive, received, receives, bring, bigger, staging, needn't, so that, kids, child, children, friend, friends, laptop, computer, computers, machine, machines, box, hardware, moment, time, day, dates, side, compatible, test, deal, colleague, responsible, case, fact, waiting, office, point, days, number, copy, requirement, requirements, op, frends, ready
"""

_KEYS = """
kind     : kind, type, product type, kinds
platform : platform, platforms, os, operating system, system, device, runs on, on, supports
channel  : channel, channels, track, release channel, stage
access   : access, price, cost, pricing
tag      : tag, tags, genre, genres, category, categories, topic, theme, keyword, keywords, tagged
org      : org, publisher, publishers, studio, vendor, maker, developer, company, organisation, organization, author, supplier, made by, published by
license  : license, licence, licenses, licences, spdx
product  : product, products, name, slug, id, app, game, tool, software, product name
title    : title, title contains, name contains
text     : text, about, q, query, search, description, contains, mentions
version  : version, versions, release
find     : find, find products, entity, target, want, select, get, list, return type, object, resource
answer   : op, operation, answer, output, mode, return, task, intent, action
order    : order, sort, order by, sort by, ordering, sorted
limit    : limit, top, max, n, first, count, max results, page size, size, number
by       : group by, by, breakdown, per
when     : when
fields   : field, fields, show, include, attributes, attribute, columns, need, info, details
since    : from, start from, since, after, released after, published after, updated after, released since, updated since, published since, from date, start, start date, date from, min date
until    : to, until, before, released before, published before, updated before, to date, end, end date, date to, max date
dated    : year, month, day, released, published, updated, date, release date, published at, last updated, updated at, released at, period, range, released in, last release, when
"""

_BEYOND = """
prices                    : price, prices, cost, costs, dollars, dollar, euro, euros, cheap, cheapest, cheaper, expensive, discount, discounts, discounted, sale, refund, refunds, subscription, bucks, pricing, "$", "€", "£", pounds, usd, eur, vat, invoice, budget, money back, trial period, a deal, deals, bargain, payment methods, seats, unit price
ratings and opinions      : do you think, your opinion, opinion, opinions, upgrade to, rating, ratings, rated, rate, rates, stars, review, reviews, reviewed, best, better, worst, good, bad, great, recommend, recommended, recommendation, recommendations, popular, popularity, favourite, favorite, top, nicest, beautiful, prettiest, fun, funniest, coolest, cool, boring, scary, trustworthy, reliable, safe, safest, quality, worth, hardest, easiest, easy, addictive, famous, award, awards, fastest, most fun, awesome, underrated, overrated, should i buy, bestselling, bestseller, worthwhile, hottest, trending
numbers of users and downloads : downloads, downloaded most, most downloaded, players, players online, how many people, how many users, number of users, users does, users has, installs, sold, sales, revenue, turnover, leaderboard, high score, highscore, subscribers, market share, concurrent, customers of, the customers, users of
requirements and sizes    : ram, memory, cpu, gpu, disk space, disk, megabytes, mb, gb, gigabytes, how big, how large, how long does, minimum requirements, hardware requirements, graphics card, system requirements, directx, resolution, fps, battery
the future                : will ever, beta end, will be, will come, will get, will have, will there, when will, will it, next year, next month, next week, tomorrow, roadmap, upcoming, planned, plans, plan, future, soon, coming soon, next one, one coming, coming, forthcoming, eventually, expect, scheduled, eta
people and accounts       : licence key, license key, serial number, lead developer, who founded, phone number, email, e-mail, address, contact, ceo, employees, staff, headquarters, password, redeemed, bought, my library, my account, my orders, order history, wishlist, codes, promo codes, coupon, coupons, who bought, salary, founded, founder, based in
stories and orders        : forget, pretend, imagine, ignore, reveal, poem, should i
how products are made and used : crash, crashes, crashed, cheat, cheat code, composed, music of, story of, how do i beat, beat the, offline play, played offline, play offline, programming language, written in, source code repository, github, engine, levels, hours, how long does it take, gamepad, controller, achievements, cheats, walkthrough, tutorial, manual, soundtrack, composer, voice actors, languages, language, translated, german, french, spanish, japanese, multilingual, localised, age rating, age, pegi, bugs, bug reports, issues, support contact, support contract, download count, install count, response time, security holes, vulnerabilities, cve, encryption, gdpr, privacy, plugins, api, screenshots, trailer, save games, hints, dlc, expansion
"""


class Meaning(NamedTuple):
    """What a word or phrase means: a slot or a class of words, and a value of it."""

    slot: str
    value: str


def _entries(table: str, slot: str = "") -> dict[tuple[str, ...], Meaning]:
    found: dict[tuple[str, ...], Meaning] = {}
    for line in table.strip().splitlines():
        head, phrases = line.split(" : ", 1)
        meaning = Meaning(slot, head.strip()) if slot else Meaning(*head.split())
        for phrase in phrases.split(", "):
            found.setdefault(tuple(token.word for token in tokens_of(phrase.strip().strip('"'))), meaning)
    return found


_NUMBERS = enumerate(str.split("two three four five six seven eight nine ten"), 2)
WORDS = _entries(_BEYOND, "beyond") | _entries(_TABLE) | {(word,): Meaning("number", str(n)) for n, word in _NUMBERS}
KEYS = {phrase: meaning.value for phrase, meaning in _entries(_KEYS, "key").items()}
_OF_IGNORED = {word: meaning.value for phrase, meaning in _entries(_IGNORED, "ignored").items() for word in phrase}
IGNORED = frozenset(_OF_IGNORED)
"""Words without a meaning of their own here."""
COURTESY = frozenset(word for word, line in _OF_IGNORED.items() if line == "courtesy and fillers") | {","}
"""Of these, what a question may begin with."""
DENIALS = frozenset(" ".join(phrase) for phrase, meaning in WORDS.items() if meaning.slot == "not")
KNOWN_WORDS = frozenset(word for phrase in WORDS for word in phrase) | IGNORED
_SHORTENED: dict[str, list[str]] = {}
for _known in sorted({phrase[0] for phrase in WORDS if len(phrase) == 1} | IGNORED):
    for _form in shortened(_known):
        _SHORTENED.setdefault(_form, []).append(_known)


def respelled(word: str) -> str:
    """The known word that a mistyped one is, or an empty text: one letter more, less, swapped with its neighbour, or in
    a long word another one. Short words that differ by one other letter are mostly words of their own."""
    forms = sorted(shortened(word)) if len(word) <= MAX_RESPELLED else []
    near = (each for form in forms for each in _SHORTENED.get(form, ()) if each[0] == word[0])
    meant = next((each for each in near if _is_typing_error(word, each)), "")
    return "" if WORDS.get((meant,), Meaning("", "")).slot == "beyond" else meant


def _is_typing_error(word: str, meant: str) -> bool:
    is_of_letters = len(meant) != len(word) or sorted(meant) == sorted(word) or len(word) > 6
    return is_of_letters and distance(word, meant, 1) is not None
