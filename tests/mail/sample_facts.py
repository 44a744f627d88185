"""What each sample mail must be read as: attributes of ParsedMail, and `files` for its attachments."""

from collections.abc import Mapping

from postroom_mail.mime.address import Address

DAMAGED = "a part with damaged encoding"
PDF = b"%PDF-1.4 tiny"

Facts = Mapping[str, object]


def one_file(name: str, content_type: str = "application/octet-stream", content: bytes = b"data") -> Facts:
    return {"files": [(name, content_type, content)], "parse_error": ""}


def text(body: str, **others: object) -> Facts:
    return {"body_text": body, "body_html": "", "files": [], "parse_error": "", **others}


PLAIN: dict[str, Facts] = {
    "plain_ascii": text(
        "Hello,\n\nall is well.\n",
        message_id="<plain@analytical.example>",
        subject="Plain",
        from_addr="Ada Lovelace <ada@analytical.example>",
        from_address="ada@analytical.example",
        to=(Address("", "desk@postroom.localhost"),),
        header_to="desk@postroom.localhost",
        cc=(),
        in_reply_to=(),
        references=(),
        automated=False,
        received_count=0,
        has_dkim_signature=False,
        report_type="",
    ),
    "plain_no_mime": text("No MIME header at all.\n", message_id=""),
    "plain_utf8_8bit": text("Grüße aus Köln — 你好\n"),
    "plain_no_charset_utf8": text("Café\n"),
    "plain_no_charset_latin1": text("Café\n"),
    "plain_ascii_lie": text("naïve\n"),
    "plain_latin1_means_windows": text("“quoted” € 5\n"),
    "plain_qp_soft_breaks": text("A long line that is wrapped € = =zz end\n"),
    "plain_base64_utf8": text("Żółw\n"),
    "plain_base64_damaged": text("Hello world", parse_error=DAMAGED),
    "plain_base64_padded_lines": text("Hello world!", parse_error=DAMAGED),
    "plain_base64_list_footer": text("Hello, list!\n", parse_error=DAMAGED),
    "plain_unknown_encoding": text("left alone\n"),
    "plain_uuencode": one_file("note.bin", content=b"uu bytes \x00\x01\x02"),
    "plain_nul_bytes": text("before\n", subject="NUL"),
    "plain_bare_lf": text("line one\nline two\n", subject="Bare LF"),
    "plain_bare_cr": text("line one\nline two\n", subject="Bare CR"),
    "plain_empty_body": text("", subject="Empty"),
    "plain_no_blank_line": text("", subject="No body"),
    "plain_headerless": text(
        "Just some words, no header.\nSecond line: with a colon.\n\nThird.\n", subject="", from_addr=""
    ),
    "plain_huge_line": text("x" * 120_000 + "\n"),
    "plain_mbox_from_line": text("kept\n", subject="Mbox"),
    "plain_broken_fold": text("body\n"),
    "plain_flowed": text(
        "This paragraph was wrapped by the sender and is one line.\n"
        "> quoted text that was wrapped too\nFrom the stuffed line\n-- \nAda\n"
    ),
    "plain_flowed_delsp": text("日本語の文\n"),
}

CHARSETS: dict[str, Facts] = {
    "charset_gb2312_rare": text("朱镕基\n"),
    "charset_ks_c_5601": text("똠방각하\n"),
    "charset_iso_2022_jp": text("日本語\n"),
    "charset_shift_jis": text("①日本\n"),
    "charset_big5": text("繁體中文\n"),
    "charset_koi8_r": text("Привет\n"),
    "charset_windows_1251": text("Привет\n"),
    "charset_utf_7": text("Hi £5\n"),
    "charset_unknown": text("grün\n"),
    "charset_punycode": text("plain-words\n"),
    "charset_utf_16": text("Straße"),
    "charset_utf8_broken": text("ok \ufffd( then €\n"),
    "charset_html_meta": {
        "body_text": "",
        "body_html": '<html><head><meta charset="windows-1251"></head><p>Привет</p></html>\n',
    },
}

HEADERS: dict[str, Facts] = {
    "header_encoded_words": {
        "subject": "one two plain three",
        "from_addr": "André Pirard <PIRARD@vm1.ulg.example>",
        "from_address": "pirard@vm1.ulg.example",
        "to": (Address("Desk", "desk@postroom.localhost"), Address("Böb, the", "bob@builder.example")),
        "header_to": 'Desk <desk@postroom.localhost>, "Böb, the" <bob@builder.example>',
    },
    "header_word_cut_mid_character": {"subject": "€ 5 你"},
    "header_broken_words": {"subject": "=?utf-8?X?abc?= =?utf-8?B?A?= =?utf-8?Q?open"},
    "header_raw_utf8": {"subject": "Übermäßig 日本", "from_addr": "Jürgen <j@x.example>"},
    "header_raw_latin1": {"subject": "Über", "from_addr": "Jürgen <j@x.example>"},
    "header_raw_bytes_in_encoded_word": {"subject": "Привет and café", "from_addr": "Jiří <j@x.example>"},
    "header_raw_subject_of_the_bodys_charset": {
        "subject": "План на завтра",
        "from_addr": "Анна <a@x.example>",
        "body_text": "Привет\n",
    },
    "header_raw_subject_of_a_parts_charset": {"subject": "会議の件", "to": (Address("山田", "y@x.example"),)},
    "header_raw_subject_iso_2022_jp": {"subject": "会議の件", "body_text": "はい\n"},
    "header_raw_utf8_subject_other_body": {"subject": "Grüße", "body_text": "Привет\n"},
    "header_address_comments_and_spaces": {
        "from_addr": "Pete <pete@silly.test>",
        "to": (
            Address("at home", "ann@x.example"),
            Address("", "bob.builder@x.example"),
            Address("Carl", "carl@x.example"),
            Address("d", "dora@x.example"),
            Address("Eve", "eve@x.example"),
        ),
    },
    "header_injected_line": {"subject": "a Bcc: evil", "body_text": "x\n"},
    "header_folded_subject": {"subject": "a subject that is folded"},
    "header_address_zoo": {
        "from_addr": '"Doe, John" <John.Doe@Corp.Example>',
        "from_address": "john.doe@corp.example",
        "to": (
            Address("", "a@x.example"),
            Address('B "Q" C', "b@x.example"),
            Address("Carol", "c@x.example"),
            Address("", "d@x.example"),
            Address("", '"odd local"@x.example'),
            Address("", "e@x.example"),
        ),
        "cc": (Address("Eve", "eve@x.example"),),
    },
    "header_comma_in_encoded_word": {"from_addr": '"Doe, John" <john@x.example>'},
    "header_address_in_name": {
        "from_addr": '"ceo@bank.example" <evil@x.example>',
        "from_address": "evil@x.example",
    },
    "header_no_from": {"from_addr": "", "from_address": "", "subject": "nobody"},
    "header_from_without_address": {"from_addr": "Mail System", "from_address": ""},
    "header_repeated": {
        "message_id": "<one@x.example>",
        "from_addr": "a@x.example",
        "subject": "first",
        "header_to": "b@x.example, c@x.example",
    },
    "header_message_id_bare": {
        "message_id": "<bare-id@x.example>",
        "in_reply_to": ("<prev@x.example>",),
        "references": ("<r1@x.example>", "<r2@x.example>", "<r3@x.example>"),
    },
    "header_message_id_missing": {"message_id": "", "references": ("<r1@x.example>", "<r2@x.example>")},
    "header_many_references": {"references": tuple(f"<r{i}@x.example>" for i in range(300, 500))},
    "date_obsolete_zone": {"parse_error": ""},
    "date_from_nowhere": {"parse_error": ""},
    "date_before_time": {"parse_error": ""},
    "date_words": {"parse_error": ""},
    "header_trace": {"received_count": 2, "has_dkim_signature": True},
    "automated_vacation": {"automated": True},
    "automated_list": {"automated": True},
    "automated_bulk": {"automated": True},
    "automated_no": {"automated": False},
}

STRUCTURE: dict[str, Facts] = {
    "html_only": {"body_text": "", "body_html": "<p>Hello</p>\n", "files": []},
    "alternative": {"body_text": "plain words", "body_html": "<p>html words</p>", "files": []},
    "alternative_last_is_best": {"body_text": "better", "body_html": "<p>h</p>"},
    "alternative_calendar": {
        "body_text": "Come along",
        "files": [("attachment-1.ics", "text/calendar", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR")],
    },
    "related_inline_image": {
        "body_html": '<img src="cid:logo@x">',
        "files": [("attachment-1.png", "image/png", b"\x89PNG\r\n\x1a\n")],
        "content_ids": ["logo@x"],
        "inline": [True],
    },
    "alternative_with_related": {
        "body_text": "text side",
        "body_html": '<img src="cid:logo@x">',
        "files": [("attachment-1.png", "image/png", b"\x89PNG\r\n\x1a\n")],
        "inline": [True],
    },
    "mixed_pdf": {
        "body_text": "see attached",
        "files": [("report.pdf", "application/pdf", PDF)],
        "inline": [False],
    },
    "mixed_several_texts": {
        "body_text": "one\ntwo\nthree",
        "body_html": "<p>three</p>",
        "files": [("notes.txt", "text/plain", b"a file")],
    },
    "mixed_unnamed_parts": {
        "body_text": "body",
        "files": [
            ("attachment-1.pdf", "application/pdf", PDF),
            ("attachment-2.bin", "application/x-strange", b"zz"),
            ("attachment-3.txt", "text/plain", b"unnamed text"),
        ],
    },
    "mixed_same_names": {
        "files": [
            (name, "application/pdf", PDF) for name in ("a.pdf", "A (2).PDF", "a (3).pdf", "a (2) (2).pdf")
        ],
    },
    "root_is_attachment": {"body_text": "", "files": [("only.pdf", "application/pdf", PDF)]},
    "nested_message": {
        "body_text": "see the forwarded mail",
        "files": [
            (
                "attachment-1.eml",
                "message/rfc822",
                b"From: x@y.example\r\nSubject: inner\r\n"
                b"Content-Type: multipart/mixed; boundary=inner\r\n\r\n"
                b"--inner\r\n\r\ninner text\r\n--inner--",
            )
        ],
    },
    "nested_message_named": {
        "files": [("Old mail.eml", "message/rfc822", b"Subject: deep\r\n\r\nhi")],
    },
    "digest": {
        "body_text": "",
        "files": [
            ("attachment-1.eml", "message/rfc822", b"Subject: one\r\n\r\nfirst"),
            ("attachment-2.eml", "message/rfc822", b"Subject: two\r\n\r\nsecond"),
        ],
    },
    "report_bounce": {
        "report_type": "delivery-status",
        "automated": True,
        "body_text": "It failed.",
        "files": [
            (
                "attachment-1.txt",
                "message/delivery-status",
                b"Reporting-MTA: dns; x.example\r\n\r\n"
                b"Final-Recipient: rfc822; no@x.example\r\nAction: failed\r\nStatus: 5.1.1",
            ),
            ("attachment-2.txt", "text/rfc822-headers", b"Message-ID: <orig@postroom.localhost>"),
        ],
    },
    "signed_pgp": {
        "body_text": "signed words",
        "files": [
            (
                "signature.asc",
                "application/pgp-signature",
                b"-----BEGIN PGP SIGNATURE-----\r\nabc\r\n-----END PGP SIGNATURE-----",
            )
        ],
    },
    "tnef": {"body_text": "body", "files": [("winmail.dat", "application/ms-tnef", b'x\x9f>"')]},
}

BROKEN_STRUCTURE: dict[str, Facts] = {
    "boundary_missing_parameter": text("found anyway", parse_error="a multipart without a boundary"),
    "boundary_never_appears": text("The boundary never comes.\n", parse_error="a multipart without parts"),
    "boundary_missing_close": {
        "body_text": "first",
        "files": [("attachment-1.pdf", "application/pdf", PDF)],
        "parse_error": "",
    },
    "boundary_inner_missing_close": {"body_text": "text\nafter", "body_html": "<p>html</p>\n"},
    "boundary_prefix_of_another": {"body_text": "text\nafter", "body_html": "<p>html</p>", "files": []},
    "boundary_trailing_blanks": text("kept"),
    "boundary_same_twice": text("inner\nouter"),
    "boundary_odd_characters": text("odd"),
    "part_without_blank_line": text("second"),
    "type_invalid": text("still text\n"),
    "type_text_other": text("# Title\n"),
}

FILENAMES: dict[str, Facts] = {
    "filename_semicolon": one_file("a;b.pdf"),
    "filename_rfc2231": one_file("€ rates.txt"),
    "filename_rfc2231_continued": one_file("Grüße aus K.txt"),
    "filename_continued_plain": one_file("long name.txt"),
    "filename_rfc2231_cut_character": one_file("€.txt"),
    "filename_encoded_word": one_file("€ price.pdf"),
    "filename_raw_utf8": one_file("Überblick.txt"),
    "filename_raw_latin1": one_file("Überblick.txt"),
    "filename_unquoted_spaces": one_file("my summer photo.jpg"),
    "filename_path_traversal": one_file("passwd"),
    "filename_windows_path": one_file("plan.doc"),
    "filename_windows_path_bare": one_file("plan.doc"),
    "filename_bidi_override": one_file("invoicefdp.exe"),
    "filename_dots_and_controls": one_file("htaccess"),
    "filename_very_long": one_file("é" * 98 + ".gz"),
    "filename_escaped_quote": one_file('say "hi".txt'),
    "filename_only_in_type": one_file("bundle.zip", "application/zip"),
}

BOUNDS: dict[str, Facts] = {
    "bound_many_parts": text("x\n" * 998 + "x", parse_error="more than 1000 parts"),
    "bound_many_levels": text("", parse_error="more than 50 levels of parts", subject="Deep"),
    "bound_many_addresses": {"to": tuple(Address("", f"u{i}@x.example") for i in range(2_000))},
    "bound_many_header_lines": text("x\n", subject="s"),
    "bound_many_encoded_words": {"subject": "w" * 3_000},
    "garbage_binary": {"files": [], "subject": "", "message_id": ""},
    "garbage_empty": text("", subject="", from_addr=""),
}

FACTS = PLAIN | CHARSETS | HEADERS | STRUCTURE | BROKEN_STRUCTURE | FILENAMES | BOUNDS
