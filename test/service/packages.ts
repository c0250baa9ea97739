import { like, lines, TIME, table } from './row.ts';

/* Packages (4.5), whose form is not shown. */

const FIELDS = lines`"name":"First year","description":"All of it","publisher":"Quill and Anchor","list_price":49.5,"library_id":7,
    "tags":["science"],"download_license":{"type":"numdays","num_days":180},"online_license":{"type":"perpetual"}`;
const SHELF = lines`{"sku":"SHELF-1","products":["L-1","L-2"],${FIELDS}}`;
const BOOKS = lines`+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"Tides"}
+ PUT /v4/assets/L-2 {"imprint_id":3,"title":"Tides"}
+ PUT /v4/assets/L-3 {"imprint_id":3,"title":"Tides"}`;
const MADE = lines`${BOOKS}
+ POST /v4/packages ${SHELF}`;
const GONE = lines`${MADE}
+ DELETE /v4/packages/SHELF-1/assets`;
/** Messages for these members. */
const wrong = (...members: readonly string[]) => ({
  errors: members.map((member) => like(`${member}: no`, new RegExp(`^${member}: `))),
});
const SKU = like('P-7', /./);
const CHECK = 'hint "before you retry"';

export const PACKAGES = table`
1-3, 4.5-4, 9-4: a package is created with all fields
${BOOKS}
> POST /v4/packages ${SHELF}
< {"sku":"SHELF-1","products":["L-1","L-2"],${FIELDS},"created_on":${TIME},"updated_on":${TIME}}
4.5-4: a package without a SKU gets one, and null for what is omitted
> POST /v4/packages {"name":"a"}
< {"sku":${SKU},"name":"a","description":null,"list_price":null,"online_license":null,"tags":[]}
4.5-4: numbers may be in quotes, and a license has each form that services document
>! POST /v4/packages {"name":"a","list_price":"49.50","library_id":"7","download_license":{"type":"numdays","num_days":"180"}}
< {"sku":${SKU},"list_price":49.5,"library_id":7,"download_license":{"type":"numdays","num_days":180}}
> POST /v4/packages {"name":"a","online_license":{"type":"absdate","expiration_date":"2027-01-01"}}
< {"sku":${SKU},"online_license":{"type":"absdate","expiration_date":"2027-01-01"}}
> POST /v4/packages {"name":"a","online_license":{"type":"absdate","expiration_date":"2027-01-01T00:00:00Z"}}
< {"sku":${SKU},"online_license":{"type":"absdate","expiration_date":"2027-01-01T00:00:00Z"}}
> POST /v4/packages {"name":"a","online_license":{"details":"a term","duration":"180"}}
< {"sku":${SKU},"online_license":{"details":"a term","duration":"180"}}
> POST /v4/packages {"name":"a","online_license":{"type":"numdays"}}
< {"sku":${SKU},"online_license":{"type":"numdays"}}
1-3, 4.5-4: a package may have an asset that is not on sale yet
+ PUT /v4/assets/L-9 {"imprint_id":1,"title":"A Book of My Own","on_sale_date":"2099-01-01"}
> POST /v4/packages {"sku":"P","name":"Mine","products":["L-9"]}
< {"sku":"P","products":["L-9"]}
2.3-1: a license may be for an asset that is not on sale yet
+ PUT /v4/assets/L-9 {"imprint_id":1,"title":"A Book of My Own","on_sale_date":"2099-01-01"}
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"L-9","type":"online"}
>! GET /v3/licenses.xml?sku=L-9
< /name="A Book of My Own" sku="L-9" isbn=""/
4.5-6, 4.5-10: a package is read
${MADE}
> GET /v4/packages/SHELF-1
< ${SHELF} => {"sku":"SHELF-1","products":["L-1","L-2"],"list_price":"49.5","library_id":"7","name":"First year","tags":["science"],
    "description":"All of it","publisher":"Quill and Anchor","online_license":{"type":"perpetual"}}
4.5-5: an update appends products once each, and replaces other fields
${MADE}
> PUT /v4/packages/SHELF-1 {"name":"Second year","products":["L-3","L-1"],"tags":[],"online_license":null}
< {"sku":"SHELF-1","name":"Second year","products":["L-1","L-2","L-3"],"tags":[],"online_license":null,"list_price":49.5}
4.5-5, 7-3: a SKU cannot be changed, and a name is a text
${MADE}
> PUT /v4/packages/SHELF-1 {"name":5}
< 422 ${wrong('name')}
> PUT /v4/packages/SHELF-1 {"sku":"OTHER"}
< 422 {"errors":["sku: cannot be changed"]}
4.5-7, 4.5-11: a package is deleted, but not its books, and its SKU is free again
${MADE}
> DELETE /v4/packages/SHELF-1/assets
< ${SHELF} => same
+ DELETE /v4/packages/SHELF-1/assets
> POST /v4/packages ${SHELF}
< ${SHELF}
+ DELETE /v4/packages/SHELF-1/assets
> GET /v4/products/L-1
< {"vbid":"L-1"} => same
4.5-5..7: a deleted package is answered with 404
${GONE}
> GET /v4/packages/SHELF-1
> PUT /v4/packages/SHELF-1 {"name":"x"}
> DELETE /v4/packages/SHELF-1/assets
< 404 {"errors":["Package SHELF-1 not found"]} => NOT_FOUND "package SHELF-1"
4.5-7: books are taken out of a package once, and the others stay
${MADE}
> DELETE /v4/packages/SHELF-1/assets {"products":["L-2","L-3"]}
< {"removed_count":1} => same
+ DELETE /v4/packages/SHELF-1/assets {"products":["L-2"]}
> DELETE /v4/packages/SHELF-1/assets {"products":["L-2"]}
< {"removed_count":0} => same
+ DELETE /v4/packages/SHELF-1/assets {"products":["L-2"]}
> GET /v4/packages/SHELF-1
< {"products":["L-1"]}
4.5-5..7, 7-2: a package of another key is answered with 403
${MADE}
> GET /v4/packages/SHELF-1 by OTHERKEY
> PUT /v4/packages/SHELF-1 {"name":"mine"} by OTHERKEY
> DELETE /v4/packages/SHELF-1/assets by OTHERKEY
< 403 {"errors":["The API key does not own this package"]} => SERVICE_FORBIDDEN hint "permission"
1-3, 4.5-10: a package is rejected for each member that is wrong
${MADE}
> POST /v4/packages {}
< 422 ${wrong('name')}
>! POST /v4/packages []
< 422 ${wrong('body')}
>! POST /v4/packages {"name":
< 422 {"errors":["body: is not JSON"]}
> POST /v4/packages ${SHELF}
> POST /v4/packages {"sku":"L-3",${FIELDS}}
< 422 ${wrong('sku')}
> POST /v4/packages {"sku":"P","name":"a","products":["L-1","none","9780000000019"]}
< 422 ${wrong('products/1', 'products/2')}
> POST /v4/packages {"sku":"P","name":"a","list_price":"a lot","tags":"science"}
< 422 ${wrong('list_price', 'tags')}
> POST /v4/packages {"name":"a","download_license":{"expiration_date":"soon"}}
< 422 ${wrong('download_license/expiration_date')}
> POST /v4/packages {"name":"a","download_license":{"type":"forever"}}
< 422 ${wrong('download_license/type')}
> POST /v4/packages {"sku":"..","name":"","list_price":-1,"library_id":1.5,"tags":[1],"products":"all","online_license":{"type":"numdays","num_days":0,"details":5}}
< 422 {"errors":["sku: must not be empty, . or ..","name: must not be empty","list_price: must be a number of at least 0",
    "library_id: must be a whole number",${like('products: no', /^products: /)},"tags/0: must be a text",
    "online_license/num_days: must be a whole number of at least 1","online_license/details: must be a text"]}
4.5-4: an answer with an error next to the SKU names the package
> POST /v4/packages {"name":"A"}
~ {"sku":"P-9","errors":["the price is ignored"]} => SERVICE_ERROR /the price is ignored.*P-9/ hint "P-9"
4.5-4..5: an answer about another package is an error
> POST /v4/packages {"sku":"P-1","name":"A","products":["B"]}
> PUT /v4/packages/P-1 {"name":"A"}
~ {"sku":"P-2"} => SERVICE_ERROR "P-2 instead of P-1"
4.5-5: an update is done by an answer that is empty, or like a package
> PUT /v4/packages/P-1 {"name":"A"}
~ => {"raw":{}}
~ {}
~ {"sku":"P-1"}
~ {"tags":[]}
~ <error message="bad name"/> => SERVICE_ERROR "bad name"
4.5-6: a package may have a code and a description
> GET /v4/packages/P-1
~ {"sku":"P-1","code":"12345","description":"A package"}
4.5-6: a read is answered with a package
> GET /v4/packages/P-1
~ => SERVICE_ERROR
~ null => SERVICE_ERROR
~ {} => SERVICE_ERROR
4.5-7: a deletion is done by an answer that is empty, or like a package
> DELETE /v4/packages/P-1/assets
~ => null
~ 204 => null
~ {} => same
~ {"sku":"P-1"} => same
~ {"tags":[]} => same
4.5-7: a deletion is not done by any other answer
> DELETE /v4/packages/P-1/assets
~ text/plain Product P-1 not found => ${CHECK}
~ "Error 12" => ${CHECK}
~ false => ${CHECK}
~ {"code":470,"description":"no"} => ${CHECK}
~ {"deleted": => ${CHECK}
~ {"deleted":true} => ${CHECK}
~ text/html <html>OK</html> => ${CHECK}
~ text/html <p>OK</p> => ${CHECK}
~ text/plain Service down for maintenance => ${CHECK}
~ "Title is required" => ${CHECK}
~ text/html Too many requests => ${CHECK}
~ "deleted" => ${CHECK}
~ text/plain OK => ${CHECK}
`;
