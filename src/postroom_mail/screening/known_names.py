"""Names that say little by themselves: hosts that everybody links to, and words that end a host."""

# Every link to them is a separate value; their bare names are none.
COMMON_HOSTS = frozenset(
    "amazon.com apple.com bit.ly datatracker.ietf.org developer.mozilla.org docs.google.com"
    " docs.python.org drive.google.com dropbox.com en.wikipedia.org facebook.com fonts.googleapis.com"
    " gist.github.com github.com gitlab.com gmail.com google.com groups.google.com instagram.com"
    " linkedin.com lists.debian.org lists.gnu.org lists.sourceforge.net lkml.org mail.google.com"
    " maps.google.com meet.google.com microsoft.com news.ycombinator.com office.com outlook.com"
    " play.google.com pypi.org python.org reddit.com schema.org schemas.microsoft.com sourceforge.net"
    " stackoverflow.com support.google.com teams.microsoft.com tools.ietf.org twitter.com"
    " us02web.zoom.us w3.org wikipedia.org x.com yahoo.com youtu.be youtube.com zoom.us".split()
)
COUNTRIES = (
    "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv"
    " bw bz ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et"
    " eu fi fj fk fm fo fr ga gb gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id"
    " ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz la lb lc li lk lr ls lt lu"
    " lv ly ma mc me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx mz na nc ne nf ng ni nl no np nr nu"
    " nz om pa pe pf pg ph pk pn pr ps pt pw qa re ro ru rw sa sb sc se sg si sj sk sl sm sn sr ss st su"
    " sv sx sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf"
    " ws ye yt za zm zw"
)
GENERIC = (
    "com net org info biz edu gov mil int app dev xyz online site shop store top club live pro mobi"
    " tech cloud click page space website fun icu vip work world life today email news agency digital"
    " group ltd company center network systems solutions services support finance bank money loan credit"
    " cash capital exchange trade host press win bid stream download review science party date men"
    " country kim rest beauty hair quest cfd sbs academy art blog care chat city codes community"
    " consulting design directory education energy engineering events expert express foundation fund"
    " gallery global guide guru health help house institute insure land law legal limited link marketing"
    " media name one partners photos place plus productions properties rocks school security social"
    " software solar studio supply team tips tools training travel university ventures vet video wiki"
    " works zone example test invalid localhost arpa asia cat coop jobs museum tel post bot bar cafe"
)
TOP_LEVELS = frozenset(f"{COUNTRIES} {GENERIC}".split()) - frozenset(
    "py pl rs sh so ps cc md mk ml".split()  # without a scheme they are mostly files
)
