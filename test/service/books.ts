import { like, table } from './row.ts';

/* Books (4.5): an asset both ways. Their form is not shown: live services answer in XML, too. */

const BOOK = '<vbid>L-9</vbid><title>A &amp; B</title><print-isbn>x</print-isbn>';
const OF_BOOK = { vbid: 'L-9', title: 'A & B', print_isbn: 'x', raw: { vbid: 'L-9', print_isbn: 'x' } };

export const BOOKS = table`
4.5-1, 9-2: a book is created
> POST /vital_books {"imprint_id":3,"title":"Tides"}
< ${{ vbid: like('9781402894626', /^978\d{10}$/), title: 'Tides' }}
4.5-2, 9-2: a book is updated
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides"}
> PUT /vital_books/L-1 {"edition":2}
< {"vbid":"L-1","edition":2}
4.5-3, 9-2: a book is read
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides"}
> GET /vital_books/L-1
< {"vbid":"L-1","title":"Tides"} => {"vbid":"L-1","title":"Tides"}
4.5-3: an unknown book is not read
> GET /vital_books/none
< 404 {"errors":["Book not found"]} => NOT_FOUND "book none"
4.5-2: an unknown book is not updated
> PUT /vital_books/none {"imprint_id":3,"title":"Tides"}
< 404 {"errors":["Book not found"]} => NOT_FOUND "book none"
4.5-2, 7-2: a book of another key
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides"}
> PUT /vital_books/L-1 {"edition":3} by OTHERKEY
< 403 {"errors":["The caller is not the content owner of L-1"]} => SERVICE_FORBIDDEN hint "Check apiKey. Content owners"
4.5-1..3: a book may be in XML
> POST /vital_books {"title":"A & B"}
~ <?xml version="1.0"?><book>${BOOK}</book> => ${OF_BOOK}
~ <vital_book vbid="L-9" title="A &amp; B"><print_isbn>x</print_isbn></vital_book> => ${OF_BOOK}
~ <response><status>200</status><book>${BOOK}</book></response> => ${OF_BOOK}
~ ${BOOK} => ${OF_BOOK}
> GET /vital_books/L-9
~ <vital_book vbid="L-9" title="A &amp; B"><print_isbn>x</print_isbn></vital_book> => ${OF_BOOK}
~ <response><status>200</status><book>${BOOK}</book></response> => ${OF_BOOK}
> PUT /vital_books/L-9 {"title":"A & B"}
~ <book>${BOOK}</book> => ${OF_BOOK}
~ ${BOOK} => ${OF_BOOK}
4.5-3: a book in XML has lists, empty values and numbers
> GET /vital_books/L-9
~ text/xml <book><vbid>L-9</vbid><variants type="array"><variant><sku>a</sku></variant></variants></book> => {"variants":[{"sku":"a"}]}
~ <book><vbid>L-9</vbid><edition type="integer">2</edition><subtitle nil="true"/></book> => {"edition":2,"raw":{"subtitle":null}}
~ <book><vbid>L-9</vbid><tag>x</tag><tag>y</tag></book> => {"raw":{"tag":["x","y"]}}
4.5-1: an answer to a creation names the book
> POST /vital_books {"title":"A"}
~ 201 <response><book><vbid>L-1</vbid></book><book><vbid>L-2</vbid></book></response> => SERVICE_ERROR hint "Look for"
~ 201 <response><status>200</status></response> => SERVICE_ERROR hint "Look for"
~ 201 <book><vbid>L-1</vbid> => XML_INVALID hint "Look for"
~ 201 <error-response><error-code>422</error-code><error-text>no title</error-text></error-response> => SERVICE_INVALID "no title"
~ 201 <book><vbid></vbid></book> => SERVICE_ERROR hint "Look for"
~ 201 application/xml => SERVICE_ERROR hint "Look for"
4.5-2: an answer to an update is about this book, or empty
> PUT /vital_books/L-9 {"title":"B"}
~ {"vbid":"OTHER-1","title":"B"} => SERVICE_ERROR "OTHER-1 instead of L-9"
~ => {"raw":{}}
4.5-3: a read is answered with a book
> GET /vital_books/L-9
~ [] => SERVICE_ERROR / answered with neither a result nor an error$/
~ => SERVICE_ERROR "nothing" hint "/vital_books"
~ null => SERVICE_ERROR "nothing" hint "/vital_books"
~ {} => SERVICE_ERROR "nothing" hint "/vital_books"
~ {"vbid":null} => SERVICE_ERROR "nothing" hint "/vital_books"
~ text/plain Book not found => SERVICE_ERROR "Book not found" hint /^(?!.*was done)/
~ Book not found => SERVICE_ERROR "Book not found" hint /^(?!.*was done)/
`;
