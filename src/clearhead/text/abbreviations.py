"""Tables for sentence splitting: abbreviations by language, ordinal numbers, and the marks that end a sentence.

Pure data, lower-case, without the final dot. Three kinds, by what may follow the dot:
    NEVER_LAST     a name or a noun follows: "Dr. Braun", "z.B. Haus"; the dot never ends a sentence
    BEFORE_NUMBER  a number follows: "No. 5", "Abb. 3"; before anything else the dot may end a sentence
    MAY_END        dotted, yet often last: "at 5 p.m. The …"
All other abbreviations ("etc.", "usw.") need no entry: before a small letter no dot ends a sentence.
"""

# Letters with dots between them ("z.B.", "U.S.") need no entry. A word that is also an ordinary one in a language
# that may meet it ("me", "on", "maj") is left out: with the language unknown all tables count together.
NEVER_LAST: dict[str, str] = {
    "en": "mr mrs ms dr prof st mt ft gen col lt capt cmdr sgt rep sen gov hon rev messrs vs cf viz",
    "de": "hr hrn fr frl dr prof ing dipl mag hl st bzw ca inkl exkl vgl sog zzgl evtl ggf insb bspw geb gest verh "
    "allg einschl nördl südl östl westl",
    "fr": "mme mmes mlle mlles dr pr mgr st ste cf env p.ex",
    "es": "sr sra srta sres dr dra dña prof ud uds vd vds lic ing gral avda p.ej",
    "it": "sig sigg sig.ra sig.na dott dott.ssa prof prof.ssa ing avv geom p.es",
    "pt": "sr sra srta dr dra prof profa exmo exma eng arq av p.ex",
    "nl": "dhr mevr mw dr drs ing mr prof bijv zgn ca incl excl jl",
    "da": "hr fr dr prof f.eks bl.a ca dvs inkl ekskl",
    "sv": "hr fr dr prof t.ex bl.a dvs ca inkl exkl",
    "no": "hr fr dr prof f.eks bl.a dvs ca inkl ekskl",
    "pl": "pp dr prof mgr inż hab ul tzw tzn np m.in",
    "cs": "pí dr prof ing mgr mudr judr phdr tzv tzn např resp",
    "ru": "гг ул проф акад напр",
    "el": "κα κος δρ καθ βλ",
}
BEFORE_NUMBER: dict[str, str] = {
    "en": "no nos nr art sec fig figs vol vols ch chap p pp ed eq ref app jan feb mar apr jun jul aug sep sept oct nov "
    "dec approx",
    "de": "nr nrn art abs abb anm aufl bd bde kap s st tab tel ziff jan feb mär apr jun jul aug sep sept okt nov dez "
    "mio mrd",
    "fr": "n no nos art chap fig p pp t vol tél janv févr avr juil sept oct nov déc",
    "es": "n nº núm núms art cap fig pág págs tel tomo vol",
    "it": "n nn art cap fig pag pagg tel vol",
    "pt": "n nº art cap fig pág págs tel vol",
    "nl": "nr nrs art blz fig hfst tel vol",
    "sv": "nr kap s sid tel",
    "da": "nr kap s side tlf",
    "no": "nr kap s side tlf",
    "pl": "nr art rozdz rys s str t tel",
    "cs": "č čl kap obr s str tel",
    "ru": "стр рис табл гл ст п тел",
}
MAY_END = frozenset({"a.m", "p.m", "a.d", "b.c"})

# Languages that write "3." for "third".
ORDINAL_DOT = frozenset(
    ["bs", "cs", "da", "de", "et", "fi", "hr", "hu", "is", "lb", "lv", "nb", "nn", "no", "pl", "sk", "sl", "sr", "tr"]
)
# Capitalised words before which a dotted number is an ordinal, whatever the language is said to be.
AFTER_ORDINAL = frozenset(
    {"januar", "jänner", "februar", "märz", "april", "mai", "juni", "juli", "august", "september", "oktober"}
    | {"november", "dezember", "jahrhundert", "jahrhunderts", "jahrtausend", "weltkrieg", "weltkriegs"}
)

SOFT_ENDS = ".!?…‼⁇⁈⁉"  # end a sentence before a space and no small letter
HARD_ENDS = "。！？｡．؟۔।॥։።။។៕"  # end a sentence wherever they stand
OPENERS = "\"'“„‚‘«‹»›([{¿¡–—-*•"  # may come before a sentence's first letter
CLOSERS = "\"'”“’‘»›«‹)]}」』】）〕〉》"  # still belong to the sentence that ended


def table(kinds: dict[str, str], language: str | None) -> frozenset[str]:
    """The words for a language, or all of them where the language is unknown or has no table."""
    chosen = [kinds[language]] if language in kinds else kinds.values()
    return frozenset(word for line in chosen for word in line.split())
