import { createNumbering } from '@catchword/sandbox/catalog/product-numbers';
import { like, lines, NUMBER, TIME, table } from './row.ts';

/* Assets (2.1, 2.2, 4.1). */

const NEW = { imprint_id: 3, title: 'Tides' };
const CREATED = lines`PUT /v4/assets/L-1 ${NEW}`;
const EAN = like('9781402894626', /^978\d{10}$/);
const PRICE = { currency: 'USD', type: 'digital_list_price', amount: '30.50', tax_inclusive: false };
const RENTAL = { currency: 'USD', type: 'digital_rental_price', amount: 12.25, duration: 180 };
const RENTED = { ...NEW, prices: [RENTAL] };
const inChannel = (id: object) => ({ variants: [{ channel_ids: [id] }] });
const inSku = (sku: string) => inChannel({ sku, channel_id_inclusive_access: 'ia' });
const CHANNEL = 'variants/0/channel_ids/0';
const NO_SKU = `${CHANNEL}/sku: must be the vbid, or vbid, R and the days of one of the rentals`;
const NO_CHANNEL = `${CHANNEL}/channel_id_inclusive_access: is required`;
const OTHER_CHANNEL = `${CHANNEL}/channel_id_retail: only channel_id_inclusive_access is supported`;
const NO_DURATION = 'prices/0/duration: is required for a rental price';
/** A generated product, which has a rental of 180 days. */
const OWN = createNumbering(1).vbid(0);
const E = { ten: '0306406152', thirteen: '9780306406157' };
const OTHER = { ten: '0198526636', thirteen: '9780198526636' };
const TWO = { e_isbn_10: [E.ten], e_isbn_13: [OTHER.thirteen, '9791090636071'] };

/** Fields that the answer repeats. */
const ECHOED = lines`"author_name":"M. O.","author_first_name":"Mei","author_last_name":"Okonkwo","copy_drm_limit":2,
    "print_drm_limit":-1,"copyright_date":"2015","description":"About tides.","e_isbn":"978-0-306-40615-7","edition":127,
    "fro":true,"fulfillment_only":true,"language":"en","login_url":"https://login.example.org/","sampleable":true,
    "off_sale_date":"2099-01-01","on_sale_date":"2016-01-01","print_isbn":"0306406152","publication_date":"2015-12-31",
    "related_products":{"next_edition":"9780306406157","previous_edition":"9791090636071"},"title":"Tides",
    "sales_rights":{"exclusive_rights":["US","CA"],"non_exclusive_rights":["ROW"],"not_for_sale":["DE"]},
    "subtitle":"A Global Perspective"`;
const NOT_SET = lines`"block_search":false,"custom":false,"epub_page_labels":false,"floe":false,"vcs_authored":false`;

/** The answer, whose variants have prices with these amounts. */
const answerWith = (dollars: string, euros: string, rental: string) => lines`{${ECHOED},${NOT_SET},"vbid":"L-1",
    "id":${NUMBER},"isbn":"978-0-306-40615-7","isbn_canonical":"9780306406157","parent_id":"0-306-40615-2","created":${TIME},
    "asset_status":{"vbk":"processing","distribution":"distributed"},"cs_plus_discount":"20","discount_codes":[],
    "book_format":{"name":"ePub","value":"epub","dash2epub":false},"lifetime_print_limit":100,
    "build":{"available":false,"source":"sandbox","status":"processing"},"kind":{"id":${NUMBER},"value":"book"},
    "identifiers":{"vbid13_alias":["9780198526636"],"vbid10_alias":["0198526636"],"print_isbn_13":["9780306406157"]},
    "imprint":{"id":3,"name":${like('Quill', /./)},"resource_url":${like('https://a.example/imprints/3', /^https:.*3$/)}},
    "publisher":{"id":${NUMBER},"name":${like('Quill', /./)},"city":${like('Springfield', /./)}},"variants":[
    {"product_id":${NUMBER},"sku":"L-1","duration":"perpetual","online_duration":"perpetual","channel_ids":[],"updated":${TIME},
    "prices":[{"price":${dollars},"currency":"USD","type":"digital_list_price","company_id":"_all"},
    {"price":${euros},"currency":"EUR","type":"digital_list_price","company_id":"_all"}]},
    {"product_id":${NUMBER},"sku":"L-1R180","duration":"180","online_duration":"180","updated":${TIME},
    "channel_ids":[{"channel":"inclusive_access","identifier":"ia-77"}],
    "prices":[{"price":${rental},"currency":"USD","type":"digital_rental_price","company_id":"_all"}]}]}`;

/** What a written ISBN, and its two lists, make of an asset and of the catalog. */
const isbns = (name: string, inCatalog: string, isbn: string) => lines`
2.1.1-5: ${name} is cleared with its lists
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","${name}":"978-0-306-40615-7"}
> PUT /v4/assets/L-1 {"identifiers":{"${name}_13":null}}
< {"vbid":"L-1","${name}":"978-0-306-40615-7"} => same
> PUT /v4/assets/L-1 {"identifiers":{"${name}_13":null,"${name}_10":null}}
> PUT /v4/assets/L-1 {"identifiers":null}
< {"vbid":"L-1","${name}":null}
> PUT /v4/assets/L-1 {"identifiers":{"${name}_13":null,"${name}_10":null},"${name}":"0198526636"}
< {"vbid":"L-1","${name}":"0198526636"} => same
+ PUT /v4/assets/L-1 {"identifiers":{"${name}_13":null,"${name}_10":null}}
> GET /v4/products/L-1
< {"vbid":"L-1","identifiers":{"print_isbn_canonical":null,"eisbn_canonical":null}} => {"vbid":"L-1"}
2.1.1-3, 2.1-14, 2.1-28, 2.2-3..4, 2.5-3: ${name} is the first of its lists if it was not written by itself
> PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","identifiers":{"${name}_13":["9780306406157","9780198526636"]}}
> PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","identifiers":{"${name}_10":["0-306-40615-2"]}}
< {"vbid":"L-1","${name}":"9780306406157","isbn":${isbn},"isbn_canonical":${isbn}}
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","identifiers":{"${name}_10":["0-306-40615-2"]}}
> GET /v4/products/L-1
< {"vbid":"L-1","identifiers":{"${inCatalog}":"9780306406157"}} => {"vbid":"L-1"}
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","identifiers":{"${name}_13":["9780306406157"]}}
+ PUT /v4/assets/L-1 {"${name}":"0198526636"}
> GET /v4/products/L-1
< {"vbid":"L-1","identifiers":{"${inCatalog}":"9780198526636"}} => {"vbid":"L-1"}
`;

export const ASSETS = table`
1-2, 2.1-3..5, 2.1-7..9, 2.1-11, 2.1-13..15, 2.1-18..36, 2.1-39, 2.1.2-1..6, 2.1.3-1..3, 2.2-1..27, 4.1-2, 4.1-4..7, 4.1-9..10, 9-1, 9-4: every field comes back, in the form of the answer
> PUT /v4/assets/L-1 {${ECHOED},"cs_plus_discount_code":"CS20","imprint_id":3,"kind":"book",
    "identifiers":{"vbid13_alias":["9780198526636"]},"parent_isbn":"0-306-40615-2","url":"https://files.example.org/a.epub",
    "prices":[${PRICE},${{ ...PRICE, currency: 'EUR', amount: 29 }},${RENTAL}],
    "variants":[{"channel_ids":[{"sku":"L-1R180","channel_id_inclusive_access":"ia-77"}]}]}
< ${answerWith('30.5', '29', '12.25')} => ${answerWith('"30.5"', '"29"', '"12.25"')}
1-1, 1-4, 4.1-3: the service assigns an EAN
> PUT /v4/assets ${NEW}
< ${{ vbid: EAN, title: 'Tides' }} => ${{ vbid: EAN }}
4.1-3: the service assigns an EAN if the vbid of the path is empty
>! PUT /v4/assets/ ${NEW}
< ${{ vbid: EAN }}
2.1-21, 2.1-33, 4.1-9: an update needs neither imprint_id nor title
+ ${CREATED}
> PUT /v4/assets/L-1 {"subtitle":"x"}
< {"vbid":"L-1","title":"Tides","subtitle":"x","imprint":{"id":3}}
2.1-21, 2.1-33, 4.1-9, 7-3: a creation needs imprint_id and title
> PUT /v4/assets/L-1 {"subtitle":"x"}
< 422 {"errors":["imprint_id: is required to create an asset","title: is required to create an asset"]}
2.1-30, 2.1.2-1..3, 4.1-6, 7-3: a 422 has a message for each invalid field
> PUT /v4/assets/L-1 ${{ ...NEW, edition: 'x', related_products: { next_edition: '1' }, prices: [{ amount: 'free' }] }}
< 422 ${{ errors: ['edition: must be 0 to 127', 'related_products/next_edition: must be an ISBN with the right check digit', 'prices/0/currency: must be an ISO 4217 code', like('prices/0/type: must', /^prices\/0\/type: /), 'prices/0/amount: must be a decimal number'] }}
7-3: a 422 changes nothing
+ ${CREATED}
+ 422 PUT /v4/assets/L-1 {"title":"Other","edition":"x"}
> GET /vital_books/L-1
< {"vbid":"L-1","title":"Tides"}
4.1-6: a vbid has no slash
> PUT /v4/assets/a%2Fb ${NEW}
< 422 ${{ errors: [like('vbid: no', /^vbid: /)] }}
4.1-6: a body is an object
>! PUT /v4/assets/L-1
>! PUT /v4/assets/L-1 {
>! PUT /v4/assets/L-1 []
>! PUT /v4/assets/L-1 null
>! PUT /v4/assets/L-1 7
>! PUT /v4/assets/L-1 "x"
< 422 /^\{"errors":\["body: /
4.1-8, 4.1-11, 5-5, 7-2: a key that does not own the asset
+ ${CREATED}
> PUT /v4/assets/L-1 {"title":"M"} by OTHERKEY
< 403 {"errors":["The caller is not the content owner of L-1"]} => SERVICE_FORBIDDEN hint "Check apiKey. Content owners"
4.1-8, 4.1-11: another key creates an asset of its own
> ${CREATED} by OTHERKEY
< {"vbid":"L-1"}
4.1-8, 4.1-11: an asset of another key
+ ${CREATED} by OTHERKEY
> PUT /v4/assets/L-1 {"title":"M"}
< 403 {"errors":["The caller is not the content owner of L-1"]}
4.1-4, 5-1: a key that does not exist
> ${CREATED} by NONE
< 403 {"errors":["API key is not valid"]}
2.1-1..2, 2.1-6, 2.1-10, 2.1-12, 2.1-16..17, 2.1-37, 2.2-8, 2.2-12, 2.2-15, 3-1, 8-6: internal fields have no effect
> PUT /v4/assets/L-1 {"imprint_id":3,"title":"A","block_search":true,"custom":true,"epub_page_labels":true,"floe":true,
    "vcs_authored":true,"asset_status":{"vbk":"done"},"discount_codes":["X"]}
< {"vbid":"L-1",${NOT_SET},"asset_status":{"vbk":"none"},"discount_codes":[],"lifetime_print_limit":100} => same
2.1-3, 2.2-7: author_name is made of the two names if it is omitted
> PUT /v4/assets/L-1 ${{ ...NEW, author_first_name: 'Mei', author_last_name: 'Okonkwo' }}
< ${{ vbid: 'L-1', author_name: 'Mei Okonkwo' }} => same
2.1-3: author_name may be the last name
> PUT /v4/assets/L-1 ${{ ...NEW, author_first_name: '', author_last_name: 'Voltaire' }}
< ${{ vbid: 'L-1', author_name: 'Voltaire' }} => same
2.1-3: author_name stays if one name alone is sent
+ PUT /v4/assets/L-1 ${{ ...NEW, author_name: 'Mei Okonkwo' }}
> PUT /v4/assets/L-1 {"author_last_name":"Suzuki"}
< {"vbid":"L-1","author_name":"Mei Okonkwo"}
2.1-13, 2.2-14: the discount of a code
> PUT /v4/assets/L-1 ${{ ...NEW, cs_plus_discount_code: 'CS20' }}
< {"vbid":"L-1","cs_plus_discount":"20"} => same
> PUT /v4/assets/L-1 ${{ ...NEW, cs_plus_discount_code: 'CS100' }}
< {"vbid":"L-1","cs_plus_discount":"100"} => same
> PUT /v4/assets/L-1 ${{ ...NEW, cs_plus_discount_code: 'CS150' }}
> PUT /v4/assets/L-1 ${{ ...NEW, cs_plus_discount_code: 'CSPLUS' }}
< {"vbid":"L-1","cs_plus_discount":"10"} => same
2.1-31: sales_rights and related_products are changed member by member
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"A","sales_rights":{"exclusive_rights":["US"],"not_for_sale":["CA"]},
    "related_products":{"next_edition":"9780306406157","previous_edition":"9791090636071"}}
> PUT /v4/assets/L-1 {"sales_rights":{"not_for_sale":null},"related_products":{"next_edition":null}}
< {"vbid":"L-1","sales_rights":{"exclusive_rights":["US"],"not_for_sale":null},
    "related_products":{"next_edition":null,"previous_edition":"9791090636071"}}
2.2-3..4: an ISBN may have dashes
> PUT /v4/assets/L-1 ${{ ...NEW, e_isbn: '0-306-40615-2' }}
< ${{ vbid: 'L-1', isbn: '0-306-40615-2', isbn_canonical: E.ten }} => same
2.2-3..4: a vbid may be the ISBN
> PUT /v4/assets/978-0-19-852663-6 ${NEW}
< {"vbid":"978-0-19-852663-6","isbn_canonical":"9780198526636"} => same
2.1.1-2: identifiers are added to those that the asset has
+ ${CREATED}
+ PUT /v4/assets/L-1 ${{ identifiers: { e_isbn_13: [E.thirteen] } }}
> PUT /v4/assets/L-1 ${{ identifiers: { e_isbn_13: [OTHER.thirteen, E.thirteen] } }}
< ${{ vbid: 'L-1', identifiers: { e_isbn_13: [E.thirteen, OTHER.thirteen], print_isbn_13: [] } }} => same
2.1.1-1, 2.1.1-3: the form of the other length is derived
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { e_isbn_13: ['978-0-306-40615-7'] } }}
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { e_isbn_10: ['0306406152'] } }}
< ${{ vbid: 'L-1', identifiers: { e_isbn_13: [E.thirteen], e_isbn_10: [E.ten] } }} => same
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { print_isbn_13: ['978-0-306-40615-7'] } }}
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { print_isbn_10: ['0306406152'] } }}
< ${{ vbid: 'L-1', identifiers: { print_isbn_13: [E.thirteen], print_isbn_10: [E.ten] } }} => same
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { vbid13_alias: ['978-0-306-40615-7'] } }}
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { vbid10_alias: ['0306406152'] } }}
< ${{ vbid: 'L-1', identifiers: { vbid13_alias: [E.thirteen], vbid10_alias: [E.ten] } }} => same
2.1.1-3: an ISBN with prefix 979 has no form of ten digits
> PUT /v4/assets/L-1 ${{ ...NEW, identifiers: { e_isbn_13: ['9791090636071'] } }}
< ${{ vbid: 'L-1', identifiers: { e_isbn_13: ['9791090636071'], e_isbn_10: [] } }} => same
2.1.1-4: an empty array changes nothing
+ ${CREATED}
+ PUT /v4/assets/L-1 ${{ identifiers: { e_isbn_13: [E.thirteen] } }}
> PUT /v4/assets/L-1 ${{ identifiers: { e_isbn_13: [], e_isbn_10: [] } }}
< ${{ vbid: 'L-1', identifiers: { e_isbn_13: [E.thirteen], e_isbn_10: [E.ten] } }} => same
2.1.1-5: null clears a list, which is derived from the other length
+ ${CREATED}
+ PUT /v4/assets/L-1 ${{ identifiers: TWO }}
> PUT /v4/assets/L-1 ${{ identifiers: { e_isbn_13: null } }}
< ${{ vbid: 'L-1', identifiers: { e_isbn_13: [E.thirteen, OTHER.thirteen], e_isbn_10: [E.ten, OTHER.ten] } }} => same
2.1.1-4..5: an empty array does not keep a list from being derived
+ ${CREATED}
+ PUT /v4/assets/L-1 ${{ identifiers: TWO }}
> PUT /v4/assets/L-1 ${{ identifiers: { e_isbn_13: null, e_isbn_10: [] } }}
< ${{ vbid: 'L-1', identifiers: { e_isbn_10: [E.ten, OTHER.ten] } }} => same
2.1.1-5: null clears all
+ ${CREATED}
+ PUT /v4/assets/L-1 ${{ identifiers: TWO }}
> PUT /v4/assets/L-1 {"identifiers":null}
< ${{ vbid: 'L-1', identifiers: { e_isbn_13: [], e_isbn_10: [] } }} => same
${isbns('e_isbn', 'eisbn_canonical', '"9780306406157"')}
${isbns('print_isbn', 'print_isbn_canonical', 'null')}
2.1.2-4: rentals are listed by duration
> PUT /v4/assets/L-1 ${{ ...NEW, prices: [180, 90, 180].map((duration) => ({ ...RENTAL, duration })) }}
< {"vbid":"L-1","variants":[{"sku":"L-1","prices":[]},{"sku":"L-1R90","prices":[{}]},{"sku":"L-1R180","prices":[{},{}]}]}
2.1.2-4: a rental has a duration
> PUT /v4/assets/L-1 ${{ ...NEW, prices: [{ ...RENTAL, duration: undefined }] }}
< 422 ${{ errors: [NO_DURATION] }}
2.1.2-1..4: a rental has a currency, an amount and a duration
> PUT /v4/assets/L-1 ${{ ...NEW, prices: [{ type: 'rental' }] }}
< 422 ${{ errors: ['prices/0/currency: must be an ISO 4217 code', 'prices/0/amount: must be a decimal number', NO_DURATION] }}
2.1.3-3, 8-7: another channel is not supported
> PUT /v4/assets/L-1 ${{ ...NEW, ...inChannel({ sku: 'L-1', channel_id_retail: 'x' }) }}
< 422 ${{ errors: [NO_CHANNEL, OTHER_CHANNEL] }}
2.1.3-2..3: a SKU is a text
> PUT /v4/assets/L-1 ${{ ...NEW, ...inChannel({ sku: 5, channel_id_retail: 'x' }) }}
< 422 ${{ errors: [`${CHANNEL}/sku: must be a text`, NO_CHANNEL, OTHER_CHANNEL] }}
2.1.3-3: a channel has an identifier
> PUT /v4/assets/L-1 ${{ ...NEW, ...inChannel({ sku: 'L-1' }) }}
< 422 ${{ errors: [NO_CHANNEL] }}
2.1.3-2: a SKU is that of the asset
> PUT /v4/assets/L-1 ${{ ...NEW, ...inSku('TYPO') }}
< 422 ${{ errors: [NO_SKU] }}
2.1.3-2: a SKU is that of a rental of the asset
> PUT /v4/assets/L-1 ${{ ...NEW, ...RENTED, ...inSku('L-1R90') }}
< 422 ${{ errors: [NO_SKU] }}
2.1.3-1: a channel is in an element of channel_ids
> PUT /v4/assets/L-1 ${{ ...NEW, variants: [{ channel_id_inclusive_access: 'x' }] }}
< 422 ${{ errors: ['variants/0/channel_id_inclusive_access: must be in an element of channel_ids'] }}
2.1.3-2: a new asset without a vbid has no SKU
> POST /vital_books ${{ ...NEW, ...inSku('L-1') }}
< 422 ${{ errors: [NO_SKU] }}
2.1.3-2: a generated product has the SKU of a rental
> PUT /v4/assets/${OWN} ${inSku(`${OWN}R180`)}
< ${{ vbid: OWN }}
with {"items":1}
2.1.3-2: a generated product does not have the SKU of another rental
> PUT /v4/assets/${OWN} ${inSku(`${OWN}R90`)}
< 422 ${{ errors: [NO_SKU] }}
with {"items":1}
2.1.3-2: an asset has the SKU of a rental
+ PUT /v4/assets/L-1 ${RENTED}
> PUT /v4/assets/L-1 ${inSku('L-1R180')}
< {"vbid":"L-1"}
2.1.3-2: a SKU may not be that of a rental that the request removes
+ PUT /v4/assets/L-1 ${RENTED}
> PUT /v4/assets/L-1 ${{ ...inSku('L-1R180'), prices: [] }}
< 422 ${{ errors: [NO_SKU] }}
4.1-6, 7-3: a 422 shows the errors, by field too
> PUT /v4/assets/L-1 {"title":"A"}
~ 422 {"errors":{"title":["is missing"],"imprint_id":["is unknown"]}} => SERVICE_INVALID /title\W+is missing.*imprint_id\W+is unknown/
~ 422 ${{ errors: Array.from({ length: 40 }, (_, index) => `field_${index}: is not allowed`) }}
7-1: an error may be inside a 200
> PUT /v4/assets/L-1 {"title":"A"}
~ {"errors":["title: is missing"]} => SERVICE_ERROR
~ {"vbid":"L-1","errors":["price 2 ignored"]} => SERVICE_ERROR /^(?!.*may exist)/
7-1: an error next to the vbid of a created asset names it
> PUT /v4/assets ${NEW}
~ {"vbid":"L-1","errors":["price 2 ignored"]} => SERVICE_ERROR /price 2 ignored.*vbid L-1 may exist now/ hint "Look for vbid L-1 before you retry"
> ${CREATED}
~ {"vbid":"L-1","errors":["price 2 ignored"]} => SERVICE_ERROR /price 2 ignored.*vbid L-1 may exist now/ hint "Look for vbid L-1 before you retry"
call put new
7-1: an empty error is none
> PUT /v4/assets ${NEW}
${['', 'null', false, 0, [], ['']].map((error) => lines`~ ${{ vbid: 'A', error, errors: error }} => {"vbid":"A"}`).join('\n')}
4.1-9: an update is done if the answer names the asset
> PUT /v4/assets/L-1 {"title":"A"}
~ {"vbid":"L-1","title":"A"}
~ {"vbid":"X","identifiers":{"vbid13_alias":["x","L-1"]}}
4.1-9: it is unclear whether an update is done if the answer does not name the asset
> PUT /v4/assets/L-1 {"title":"A"}
~ => SERVICE_ERROR hint "Check whether it was done before you retry."
~ {} => SERVICE_ERROR hint "Check whether it was done before you retry."
~ {"title":"A"} => SERVICE_ERROR hint "Check whether it was done before you retry."
~ {"vbid":"b","title":"A"} => SERVICE_ERROR hint "Check whether it was done before you retry."
~ {"vbid":"a","x":${'['.repeat(5_000)}${']'.repeat(5_000)}} => SOURCE_BODY
1-4: an answer to a creation names the asset
> PUT /v4/assets ${NEW}
~ {"title":"A"} => SERVICE_ERROR
~ => SERVICE_ERROR
~ [] => SERVICE_ERROR
4.1-6: a text is not an answer to a write
> PUT /v4/assets ${NEW}
~ text/plain Service down for maintenance => SERVICE_ERROR "Service down for maintenance" hint "before you retry"
~ text/plain "Service down" => SERVICE_ERROR "Service down" hint "before you retry"
~ text/plain 9781402894626 => SERVICE_ERROR "9781402894626" hint "before you retry"
~ text/plain "HTTP-502" => SERVICE_ERROR "HTTP-502" hint "before you retry"
> PUT /v4/assets/L-1 {"title":"A"}
~ text/plain OK => SERVICE_ERROR "OK" hint "before you retry"
~ text/plain "OK" => SERVICE_ERROR "OK" hint "before you retry"
~ text/plain "9781402894626" => SERVICE_ERROR "9781402894626" hint "before you retry"
~ text/plain HTTP-502 => SERVICE_ERROR "HTTP-502" hint "before you retry"
2.2-1, 2.2-8, 2.2-11, 2.2-14, 2.2-16..17, 2.2-27: values may have other forms, and keep every digit
> GET /vital_books/L-9
~ {"vbid":9781402894626,"edition":"0","copy_drm_limit":"-1","fro":"true"} => {"vbid":"9781402894626","edition":0,"copy_drm_limit":-1,"fro":true}
~ {"vbid":"a","kind":{"id":"4","value":"chapter"}} => {"kind":{"id":4,"value":"chapter"}}
~ {"vbid":"a","language":"en"} => {"language":"en"}
~ {"vbid":"a","language":"English"} => {"language":"English"}
~ {"vbid":"a","cs_plus_discount":12.5} => {"cs_plus_discount":"12.5"}
~ {"vbid":"a","variants":[{"prices":[{"price":"19.90"}]}]} => {"variants":[{"prices":[{"price":"19.90"}]}]}
~ {"vbid":"a","variants":[{"prices":[{"price":19.9}]}]} => {"variants":[{"prices":[{"price":"19.9"}]}]}
~ {"vbid":"a","variants":[{"prices":[{"price":"12345678901234567.10"}]}]} => {"variants":[{"prices":[{"price":"12345678901234567.10"}]}]}
2.2-1..27: what has another form is left out, but is in raw
> GET /vital_books/L-9
~ {"vbid":"a","kind":["chapter"]} => {"raw":{"kind":["chapter"]}} without kind
~ {"vbid":"a","variants":[{"prices":[{"price":"free"}]}]} => {"variants":[{"prices":[{}]}]} without variants[0].prices[0].price
~ {"vbid":"a","title":null,"isbn":"null"} => {"raw":{"title":null,"isbn":"null"}} without title isbn
~ {"vbid":"a","edition":"third","build":"yes","variants":[7]} => {"variants":[],"raw":{"variants":[7]}} without edition build kind prices
~ {"vbid":"a","rating":{"x":1}} => {"raw":{"rating":{"x":1}}}
`;
