import { like, lines, TIME, table } from './row.ts';

/* The list of products (2.5, 4.4). */

const price = (currency: string, amount: number) => ({ currency, type: 'digital_list_price', amount });
const TWO = lines`+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","e_isbn":"9780306406157"}
+ PUT /v4/assets/L-2 ${{ imprint_id: 3, title: 'Currents', prices: [price('USD', 30.5), price('EUR', 28)] }}`;
const FIRST = lines`{"vbid":"L-1","title":"Tides","created":${TIME},"identifiers":{"print_isbn_canonical":null,"eisbn_canonical":"9780306406157"}}`;
const NO_ISBN = lines`{"print_isbn_canonical":null,"eisbn_canonical":null}`;
const SECOND = lines`{"vbid":"L-2","title":"Currents","identifiers":${NO_ISBN}}`;
const priced = (...prices: readonly string[]) =>
  lines`{"vbid":"L-2","title":"Currents","variants":[{"sku":"L-2","prices":[${prices.join()}]}]`;
const DOLLARS = '{"type":"digital_list_price","value":30.5,"currency":"USD"}';
const EUROS = '{"type":"digital_list_price","value":28,"currency":"EUR"}';
/** A page of all products, with these items. */
const page = (count: number, ...items: readonly string[]) =>
  lines`{"num_items":${count},"page":1,"per_page":1000,"total_pages":${Math.ceil(count / 1000)},"items":[${items.join()}]}`;
const BOTH = '"products":[{"vbid":"L-1","title":"Tides"},{"vbid":"L-2"}],"rejected":[]';
const START = '2020-01-01T00%3A00%3A00.000Z';
const PLUS = '{"errors":["from: must be an ISO 8601 time; write a plus as %2B"]}';

/** Queries that the client does not send. */
const INVALID =
  'page=0 page=x per_page=0 per_page=1001 per_page= from=yesterday from=2026-13-01 from=2026-02-30 until=1'
    .concat(' include_details=everything include_details=a?b currency=euro from=2026-11-31T10:00:00+02:00')
    .split(' ')
    .map((query) => `>! GET /v4/products?${query}\n< 422 /^\\{"errors":\\["${query.split('=')[0]}: /`)
    .join('\n');

export const PRODUCTS = table`
2.5-1..3, 4.4-1..4, 4.4-7, 4.4-9, 4.4-11..13, 4.4-15, 8-2, 9-1, 9-4: a full load reads pages of 1,000 lean items
${TWO}
> GET /v4/products?page=1&per_page=1000
< ${page(2, FIRST, `${priced(DOLLARS, EUROS)}}`)} => {"value":{"page":1,"perPage":1000,"totalPages":1,"numItems":2,${BOTH}}}
4.4-7, 4.4-9, 4.4-12: a page has as many items as asked for, and none beyond the end
${TWO}
> GET /v4/products?page=1&per_page=1
< {"num_items":2,"page":1,"per_page":1,"total_pages":2,"items":[${FIRST}]} => {"value":{"perPage":1,"totalPages":2,"products":[{"vbid":"L-1"}]}}
>! GET /v4/products?page=3&per_page=1
< {"num_items":2,"page":3,"per_page":1,"total_pages":2,"items":[]}
4.4-6, 4.4-10: details and currencies are given on request
${TWO}
> GET /v4/products?page=1&per_page=1000&include_details=subjects%2Cmetadata&currency=EUR
< ${page(2, FIRST, lines`${priced(EUROS)},"subjects":[],"metadata":{"imprint_name":${like('Quill', /./)}}}`)} => {"value":{"products":[{},{"product":{"metadata":{"imprint_name":"Quill"}}}]}}
4.4-5, 4.4-14: a delta lists changes since a time
${TWO}
> GET /v4/products?page=1&per_page=1000&from=${START}
< ${page(2, FIRST, SECOND)} => {"value":{${BOTH}}}
4.4-8: a list may end at a time
${TWO}
> GET /v4/products?page=1&per_page=1000&until=${START}
< ${page(0)} => {"value":{"numItems":0,"products":[]}}
4.4-6, 4.4-15: groups are added to lean products, too
>! GET /v4/products?include_details=subjects
< /"items":.\{"vbid":"\d+","identifiers":\{[^}]*\},"subjects":.[^\]]*\]\}\]/
with {"items":1}
2.5-1..3, 4.4-15: an asset is shown with the fields that the catalog has
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides","kind":"title","edition":2,"language":"fr","author_name":"Mei Okonkwo","copy_drm_limit":5,
    "identifiers":{"print_isbn_13":["9780306406157"],"e_isbn_10":["0198526636"]},"sales_rights":{"exclusive_rights":["US"],"not_for_sale":["CA"]},
    "prices":[{"currency":"USD","type":"digital_list_price","amount":"30.50"},{"currency":"EUR","type":"digital_list_price","amount":28},
    {"currency":"EUR","type":"digital_rental_price","amount":9,"duration":180}]}
>! GET /v4/products?include_details=identifiers,metadata&currency=EUR
< {"num_items":1,"items":[{"vbid":"L-1","title":"Tides","kind":"title","edition":2,"language":"fr","copy_restrictions":5,
    "identifiers":{"print_isbn_canonical":"9780306406157","eisbn_canonical":"9780198526636","print_isbn_10":["0306406152"],"e_isbn_13":["9780198526636"]},
    "contributors":[{"name":"Mei Okonkwo","type":"author"}],"sales_rights":["US"],"exclude_sales_rights":["CA"],
    "variants":[{"sku":"L-1","prices":[{"type":"digital_list_price","value":28,"currency":"EUR"}]},
    {"sku":"L-1R180","duration":"180","prices":[{"value":9,"currency":"EUR"}]}],"metadata":{"imprint_name":${like('Quill', /./)}}}]}
+ PUT /v4/assets/L-1 {"sales_rights":{"not_for_sale":null}}
>! GET /v4/products/L-1
< {"title":"Tides","sales_rights":["US"],"exclude_sales_rights":[]}
2.5-2: a product is looked up by its vbid
${TWO}
> GET /v4/products/L-1
< ${FIRST} => {"vbid":"L-1","title":"Tides"}
2.5-2: an unknown product is answered with 404, which is not an error
> GET /v4/products/a%20b
< 404 {"errors":["Product a b not found"]} => undefined
> GET /v4/products/9780000000000
< 404 {"errors":["Product 9780000000000 not found"]} => undefined
>! GET /v4/products/%ZZ
< 404 {"errors":["Product %ZZ not found"]}
4.4-2..3, 5-1, 5-3: a key or a token that is not valid is rejected with 403
> GET /v4/products?page=1&per_page=1000 by WRONG sandboxtoken
< 403 {"errors":["API key is not valid"]} => SOURCE_AUTH
> GET /v4/products?page=1&per_page=1000 by SANDBOXKEY wrong
> GET /v4/products?page=1&per_page=1000 by SANDBOXKEY othersandboxtoken
> GET /v4/products?page=1&per_page=1000 by OTHERKEY sandboxtoken
< 403 {"errors":["Access token is not valid"]} => SOURCE_AUTH
>! GET /v4/products by OTHERKEY othersandboxtoken
< {"page":1}
5-7, 7-5: a stale token yields 601, an unknown one does not
+ POST /_sandbox/expire {"reference":"sandbox-reader"}
> GET /v4/products?page=1&per_page=1000
< 403 {"errors":["Access token is not valid any longer (601)"]} => SERVICE_TOKEN 601
4.4-2..3, 5-1, 5-3: products need a key and a token
>! GET /v4/products by - -
>! GET /v4/products by SANDBOXKEY -
< 401 /^\{"errors":\["/
> GET /v4/products?page=1&per_page=1000 by NOCATALOG nocatalogtoken
< 500 {"errors":["Catalog not found"]} => SOURCE_AUTH
4.4-5..7, 4.4-9, 7-3: the query of products is checked
${INVALID}
>! GET /v4/products?from=2026-11-20T10:00:00+02:00
< 422 ${PLUS}
>! GET /v4/products?from=2026-11-20T10:00:00%2B02:00
< {"page":1}
9-3..4: an unknown path is answered in its format, also without a key
>! GET /v4/nothing by -
< 401 /^\{"errors":\["/
>! GET /v4/nothing
< 404 {"errors":["/v4/nothing not found"]}
>! GET /v3/nothing.xml
< 404 <error-response><error-code>404</error-code><error-text>/v3/nothing.xml not found</error-text></error-response>
>! POST /v4/products {}
< 405 {"errors":["POST is not allowed"]}
2.5-1: an item without a vbid is rejected, and the others are read
> GET /v4/products?page=1&per_page=1000
~ ${page(2, '{"title":"no vbid"}', '{"vbid":"a"}')} => {"value":{"products":[{"vbid":"a"}],"rejected":[{"position":0,"body":"{\"title\":\"no vbid\"}"}]}}
~ 404 => SOURCE_NOT_SERVICE
~ ${page(601, '{"vbid":"x1","title":"601: The access token has expired","code":"601","description":"token"}')} => {"value":{"products":[{"vbid":"x1"}]}}
2.5-2: a lookup is answered with the product, a 410 or a 404, which a wrong address is not
> GET /v4/products/x1
~ {"vbid":"x1","code":"601","description":"token","status":"token 601","kind":"book"} => {"vbid":"x1"}
~ {"vbid":"x1","status":"601","message":"token"} => {"vbid":"x1"}
~ 410 => undefined
~ 404 => undefined
~ 404 {} => undefined
~ 404 {"errors":[]} => undefined
~ 404 text/html <!DOCTYPE html><html>Not found</html> => SOURCE_NOT_SERVICE
`;
