import { table } from './row.ts';

/* Errors (7): whatever their layout, and replies that the sandbox was told to give. */

const ADDRESS =
  'hint "Check baseUrl: the service does not have this operation at this address, or hides it from this API key."';
const IDENTIFIER = 'hint "Check the identifier, and whether this API key may see it."';
const NOT_FOUND = '404 {"errors":["not found"]}';
const NEITHER = '=> SERVICE_ERROR "neither a result nor an error" hint "before you retry"';
const AGAIN = 'hint "Look for it before you retry: it may have been created."';

export const ERRORS = table`
7-2..3, 7-5..7: an error has a code and a hint, by its status or its custom code
> PUT /v4/assets/L-1 {"title":"A"}
~ golden:error-601 => SERVICE_TOKEN 601
~ 401 golden:error-601 => SERVICE_TOKEN 601
~ 601 => SERVICE_TOKEN 601
~ 404 <error code="603" message="no such reference"/> => SERVICE_UNKNOWN_USER 603
~ 422 {"errors":["title is missing"]} => SERVICE_INVALID /422: title is missing$/
~ 422 <error>no</error> => SERVICE_INVALID /422: no$/
~ 400 <error code="650" message="malformed"/> => SERVICE_INVALID 650
~ 403 {"errors":["not yours"]} => SERVICE_FORBIDDEN
~ 401 => SOURCE_AUTH
~ 409 <error code="468" message="invalid"/> => SERVICE_ERROR 468
~ 409 golden:error-904 => SERVICE_INVALID 904
~ 413 {"errors":["too large"]} => SOURCE_REFUSED hint "larger than the service, or a proxy, accepts"
~ 418 => SOURCE_REFUSED hint "Look up status 418 in the documentation of the service."
~ 500 <error code="999" message="?"/> => SERVICE_ERROR 999
~ 422 {"errors":${'['.repeat(100_000)}${']'.repeat(100_000)}} => SERVICE_INVALID
~ 200 {"errors":${'['.repeat(100_000)}${']'.repeat(100_000)}} => SOURCE_BODY
> GET /v3/licenses.xml
~ 418 application/xml => SOURCE_REFUSED hint "Look up status 418 in the documentation of the service."
7-3: a 404 is a wrong address, if the request names nothing that could be missing
> GET /v3/licenses.xml
> PUT /v4/assets {"imprint_id":5,"title":"Made"}
> POST /v4/packages {"sku":"P"}
~ ${NOT_FOUND} => SOURCE_NOT_SERVICE ${ADDRESS}
7-3: a 404 is an unknown identifier, if the request has one
> PUT /v4/assets/a {"title":"A"}
> GET /v4/packages/P
> GET /vital_books/a
> GET /v3/users.xml/r
~ ${NOT_FOUND} => NOT_FOUND ${IDENTIFIER}
4.1-9, 7-4: a creation is final after an answer that cannot be read, or that is a page
> PUT /v4/assets {"imprint_id":5,"title":"Made"}
~ {"vbid": => SOURCE_BODY ${AGAIN}
~ text/html <!doctype html><p>Soon back => SERVICE_ERROR ${AGAIN}
~ <error code="500" message="oops"/> => SOURCE_UNAVAILABLE ${AGAIN}
> POST /v3/users.xml <user><reference>r</reference><first-name>Ada</first-name><last-name>L</last-name></user>
~ <user><guid> => XML_INVALID ${AGAIN}
4.1-9, 4.5-1..2, 4.5-4..5, 4.5-7: a write is not done if the answer says something else
> PUT /v4/assets/a {"title":"T"}
> POST /vital_books {"title":"T"}
> PUT /vital_books/a {"title":"T"}
> POST /v4/packages {"sku":"P"}
> PUT /v4/packages/P {}
> DELETE /v4/packages/P/assets
~ {"success":false,"message":"not saved"} ${NEITHER}
~ {"success":false,"description":"not saved"} ${NEITHER}
~ {"status":"error","message":"not saved"} ${NEITHER}
~ {"status":422,"message":"not saved"} ${NEITHER}
~ {"fault":{"message":"not saved"}} ${NEITHER}
~ {"deleted":true,"message":"not saved"} ${NEITHER}
7-4: the sandbox replies as often as it was told, and changes nothing
+ POST /_sandbox/answer {"operation":"PUT /v4/assets/:vbid","status":500,"times":2}
>! PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
< 500 {"errors":["Internal Server Error"]}
+ 500 PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
>! PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
< 500 {"errors":["Internal Server Error"]}
+ 500 PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
+ 500 PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
>! GET /vital_books/L-1
< 404 {"errors":["Book not found"]}
+ 500 PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
+ 500 PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
>! PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
< {"vbid":"L-1"}
+ POST /_sandbox/answer {"operation":"PUT /v4/assets/:vbid","status":500,"times":0}
>! PUT /v4/assets/L-1 {"imprint_id":1,"title":"Tides"}
< {"vbid":"L-1"}
5-7, 7-5, 7-7: the sandbox replies with any custom code and status, in the format of the operation
+ POST /_sandbox/answer {"operation":"GET /v3/licenses.xml","code":601,"status":401,"message":"a < b"}
+ POST /_sandbox/answer {"operation":"GET /v4/products","code":601,"status":200,"message":"Token"}
> GET /v3/licenses.xml
< 401 <error-response><error-code>601</error-code><error-text>a &lt; b</error-text></error-response> => SERVICE_TOKEN 601
+ 401 GET /v3/licenses.xml
>! GET /v3/licenses.xml
< /<licenses/
> GET /v4/products?page=1&per_page=1000
< {"errors":["Token (601)"]} => SERVICE_TOKEN 601
+ 401 GET /v3/licenses.xml
+ POST /_sandbox/answer {"operation":"GET /v3/licenses.xml","code":601,"status":200}
> GET /v3/licenses.xml
< <error-response><error-code>601</error-code><error-text>The access token is not valid any longer for the user</error-text></error-response> => SERVICE_TOKEN 601
7-4: the sandbox replies alike at both paths of an operation, once
+ POST /_sandbox/answer {"operation":"POST /v3/users","status":503}
+ POST /_sandbox/answer {"operation":"GET /v3/users/:id","status":503}
>! POST /v3/users.xml <user><reference>r</reference></user>
< 503 /<error-code>503</
+ 503 POST /v3/users.xml <user><reference>r</reference></user>
>! POST /v3/users.xml <user><reference>r</reference></user>
< /<reference>r</
>! GET /v3/users.xml/user-0000001
< 503 /<error-code>503</
7-4: the sandbox replies alike at the other path, too
+ POST /_sandbox/answer {"operation":"POST /v3/users.xml","status":503}
>! POST /v3/users <user><reference>r</reference></user>
< 503 /<error-code>503</
`;
