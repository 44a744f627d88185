"""Names that say little by themselves: hosts that everybody links to, and words that end a host."""

# Every link to them is a separate value; their bare names are none.
COMMON_HOSTS = frozenset(
    "amazon.com apple.com arxiv.org bit.ly datatracker.ietf.org developer.mozilla.org"
    " docs.google.com docs.python.org doi.org drive.google.com dropbox.com dx.doi.org"
    " en.wikipedia.org facebook.com fonts.googleapis.com gist.github.com github.com gitlab.com"
    " gmail.com google.com groups.google.com instagram.com linkedin.com lists.debian.org"
    " lists.gnu.org lists.sourceforge.net lkml.org mail-archive.com mail.google.com maps.google.com"
    " meet.google.com microsoft.com news.ycombinator.com office.com outlook.com play.google.com"
    " pypi.org python.org reddit.com researchgate.net schema.org schemas.microsoft.com"
    " scholar.google.com sf.net sourceforge.net stackoverflow.com support.google.com"
    " teams.microsoft.com tools.ietf.org twitter.com us02web.zoom.us w3.org web.archive.org"
    " wikipedia.org x.com yahoo.com youtu.be youtube.com zoom.us".split()
)
# Domains that one organization has for itself, with all hosts below: their bare names tell nobody anything.
# So have all below `gov` and `mil`.
# Nobody else can publish there, so no free mailboxes, hosted pages, code, files or shortened links.
WELL_KNOWN = frozenset(
    "abc.net.au acm.org adobe.com akamai.com aljazeera.com ama-assn.org amd.com ansi.org apache.org"
    " apnews.com arm.com arstechnica.com asahi.com asus.com att.com bankofamerica.com barclays.co.uk"
    " bbc.co.uk bbc.com bloomberg.com boeing.com bosch.com boston.com bostonglobe.com britannica.com"
    " broadcom.com brother.com businessinsider.com businessweek.com canon.com canonical.com cbc.ca"
    " cbsnews.com centos.org cert.org chase.com chicagotribune.com cisco.com citibank.com cnbc.com"
    " cnet.com cnn.com commerzbank.de computerworld.com corriere.it cpan.org debian.org dell.com"
    " deutsche-bank.de dhl.com digicert.com dw.com economist.com eff.org elpais.com elsevier.com"
    " engadget.com epson.com ericsson.com europa.eu f-secure.com faz.net fedex.com fedoraproject.org"
    " forbes.com forrester.com foxnews.com freebsd.org fsf.org ft.com fujitsu.com gartner.com"
    " gentoo.org gizmodo.com gnu.org gov gov.uk guardian.co.uk handelsblatt.com heise.de hitachi.com"
    " hp.com hpe.com hsbc.com huawei.com iana.org ibm.com icann.org ieee.org ietf.org"
    " independent.co.uk infoworld.com ing.com intel.com internic.net isc.org iso.org itu.int"
    " jstor.org kaspersky.com kernel.org kodak.com latimes.com lefigaro.fr lemonde.fr lenovo.com"
    " letsencrypt.org lg.com linux.com linux.org logitech.com lufthansa.com lwn.net macworld.com"
    " mastercard.com mcafee.com merriam-webster.com micron.com mil mitre.org motorola.com mozilla.com"
    " mozilla.org mozillazine.org mysql.com nationalgeographic.com nature.com nbcnews.com nec.com"
    " netbsd.org netflix.com networkworld.com newyorker.com nginx.org nhs.uk nikon.com nokia.com"
    " novell.com npr.org nvidia.com nxp.com nypost.com nytimes.com oecd.org openbsd.org openssh.com"
    " openssl.org opensuse.org oracle.com oreilly.com orf.at oxfordjournals.org panasonic.com"
    " paypal.com pbs.org pcmag.com pcworld.com perl.org philips.com php.net politico.com"
    " postgresql.org qualcomm.com redhat.com repubblica.it reuters.com rfc-editor.org ripe.net"
    " rust-lang.org samba.org samsung.com sandisk.com sap.com science.org sciencedirect.com"
    " sciencemag.org scmp.com seagate.com securityfocus.com sfgate.com siemens.com slashdot.org"
    " snopes.com sony.com sophos.com spiegel.de springer.com sqlite.org st.com sueddeutsche.de"
    " suse.com symantec.com t-mobile.com tagesschau.de techcrunch.com telegraph.co.uk telekom.de"
    " theatlantic.com theguardian.com theregister.co.uk theregister.com theverge.com ti.com time.com"
    " toshiba.com toyota.com trendmicro.com ubuntu.com un.org unesco.org unicode.org ups.com"
    " usatoday.com usenix.org usps.com verisign.com verizon.com vim.org visa.com vmware.com"
    " vodafone.com volkswagen.de washingtonpost.com wdc.com webmd.com welt.de who.int wikimedia.org"
    " wired.com worldbank.org wsj.com xerox.com xilinx.com zdnet.com zeit.de".split()
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
