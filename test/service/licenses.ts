import { golden, lines, table } from './row.ts';
import { READER, USERS } from './users.ts';

/* Licenses (2.3, 4.2): XML, to the byte. */

const HYDROLOGY = { imprint: 'Harbour Lane', publisher: 'Harbour Lane Press', name: 'Elements of Hydrology' };
const PAST = 'Thu, 10 Mar 2016 22:14:54 GMT';
const BOTANY = { imprint: 'Quill', publisher: 'Quill & Anchor', name: 'Principles of <Botany>' };
const grant = (sku: string, more: object) =>
  lines`+ POST /_sandbox/grant ${{ reference: 'reader-1', sku, isbn: sku, kind: 'book', ...more }}`;
/** The licenses of the golden files. */
const LICENSES = `${USERS}
${grant('9780000000019', { ...BOTANY, type: 'downloadable', expiration: 'never', code_use: 'code-api' })}
${grant('9780000000026', { ...HYDROLOGY, type: 'online', term: '180', code_use: 'add-drop', expiration: '2099-12-31' })}
${grant('9780000000026', { ...HYDROLOGY, type: 'downloadable', code_use: 'p+e', expiration: PAST })}`;

const ONE = lines`{"sku":"9780000000019","type":"downloadable","expiration":"never","expiresAt":null,"kind":"book",
    "imprint":"Quill","publisher":"Quill & Anchor","name":"Principles of <Botany>","isbn":"9780000000019","partOf":null,
    "term":null,"codeUse":"code-api","others":{}}`;
const ONLINE = lines`{"type":"online","expiresAt":${Date.UTC(2100, 0, 1)},"term":"180","codeUse":"add-drop"}`;
const EXPIRED = lines`{"type":"downloadable","expiration":"${PAST}","expiresAt":${Date.parse(PAST)},"term":null,"codeUse":"p+e"}`;

const [, ROOT = '', ONLINE_XML = '', EXPIRED_XML = ''] =
  /(<licenses>)(<license [^>]*>)(<license [^>]*>)/.exec(golden('licenses-two')) ?? [];
const [ONE_XML = ''] = /<license [^>]*>/.exec(golden('licenses-one')) ?? [];
const counts = (distributable: number) =>
  `<summary distributable_products="${distributable}" total_products="3"/></licenses>`;
const TUTORIAL =
  '<licenses><license imprint="" publisher="" name="Bookshelf Tutorial" sku="BOOKSHELF-TUTORIAL" isbn="" part_of="" term="" code-use="demo" kind="book" type="download" expiration="never"/><summary distributable_products="1" total_products="7"/></licenses>';
const NONE = 'SERVICE_ERROR';

export const LICENSE_ROWS = table`
4.2-2, 4.2-5, 4.2-7: a title without a license
${LICENSES}
> GET /v3/licenses.xml?sku=9780000000033 by SANDBOXKEY ${READER}
< golden:licenses-none => {"licenses":[]}
4.2-2: a SKU may have any character
${LICENSES}
> GET /v3/licenses.xml?sku=L-999+70031%26x by SANDBOXKEY ${READER}
< golden:licenses-none => {"licenses":[]}
2.3-1..6, 3-2, 4.2-1..2, 4.2-4..5, 4.2-7, 9-1, 9-3: a license has eleven attributes, and the counts of the account
${LICENSES}
> GET /v3/licenses.xml?sku=9780000000019 by SANDBOXKEY ${READER}
< golden:licenses-one => {"licenses":[${ONE}],"distributable":1,"total":3}
2.3-2, 4.2-3, 4.2-8: the licenses of a type
${LICENSES}
> GET /v3/licenses.xml?sku=9780000000019&license_type=all by SANDBOXKEY ${READER}
< golden:licenses-one => {"licenses":[${ONE}]}
> GET /v3/licenses.xml?sku=9780000000019&license_type=online by SANDBOXKEY ${READER}
< golden:licenses-none => {"licenses":[]}
> GET /v3/licenses.xml?sku=9780000000026&license_type=online by SANDBOXKEY ${READER}
< ${ROOT}${ONLINE_XML}${counts(1)} => {"licenses":[${ONLINE}],"distributable":1}
> GET /v3/licenses.xml?sku=9780000000026&license_type=downloadable by SANDBOXKEY ${READER}
< ${ROOT}${EXPIRED_XML}${counts(0)} => {"licenses":[${EXPIRED}],"distributable":0}
> GET /v3/licenses.xml?sku=9780000000026&license_type=download by SANDBOXKEY ${READER}
< ${ROOT}${EXPIRED_XML}${counts(0)} => {"licenses":[${EXPIRED}]}
> GET /v3/licenses.xml?license_type=online by SANDBOXKEY ${READER}
< ${ROOT}${ONLINE_XML}${counts(1)} => {"licenses":[${ONLINE}],"distributable":1,"total":3}
2.3-2..4, 4.2-8: both types of a title, one expired
${LICENSES}
> GET /v3/licenses.xml?sku=9780000000026 by SANDBOXKEY ${READER}
< golden:licenses-two => {"licenses":[${ONLINE},${EXPIRED}],"distributable":1,"total":3}
4.2-6: all licenses of the account
${LICENSES}
> GET /v3/licenses.xml by SANDBOXKEY ${READER}
< ${ROOT}${ONE_XML}${ONLINE_XML}${EXPIRED_XML}${counts(2)} => {"licenses":[${ONE},${ONLINE},${EXPIRED}],"distributable":2}
2.3-2: a downloadable license is found by either word
> GET /v3/licenses.xml?sku=BOOKSHELF-TUTORIAL&license_type=downloadable
> GET /v3/licenses.xml?sku=BOOKSHELF-TUTORIAL&license_type=download
< ${TUTORIAL} => {"licenses":[{"type":"downloadable"}]}
> GET /v3/licenses.xml?sku=BOOKSHELF-TUTORIAL&license_type=online
< golden:licenses-none => {"licenses":[]}
4.2-3: the query of licenses is checked
>! GET /v3/licenses.xml?license_type=paper
>! GET /v3/licenses.xml?license_type=
>! GET /v3/licenses.xml?license_type=ONLINE
< 400 /<error-code>400<.error-code><error-text>license_type: /
>! GET /v3/licenses.xml?sku=
< 400 /<error-code>400<.error-code><error-text>sku: /
4.2-9, 7-1: an error may be inside a 200
${USERS}
+ POST /_sandbox/fail {"reference":"reader-1","code":469}
> GET /v3/licenses.xml by SANDBOXKEY ${READER}
< golden:error-469 => SERVICE_ERROR 469
4.2-9, 7-1: an unknown user may be inside a 200
${USERS}
+ POST /_sandbox/fail {"reference":"reader-1","code":474}
> GET /v3/licenses.xml by SANDBOXKEY ${READER}
< golden:error-474 => SERVICE_UNKNOWN_USER 474
5-7, 7-5, 7-7: a stale token yields 601, and so does an unknown one, and one of another key
${USERS}
+ POST /_sandbox/expire {"reference":"reader-1"}
> GET /v3/licenses.xml by SANDBOXKEY ${READER}
< golden:error-601 => SERVICE_TOKEN 601 hint "Set reference"
> GET /v3/licenses.xml by SANDBOXKEY unknown
> GET /v3/licenses.xml by SANDBOXKEY othersandboxtoken
> GET /v3/licenses.xml by OTHERKEY sandboxtoken
< golden:error-601 => SERVICE_TOKEN 601
4.2-4, 5-3: licenses need a key and a token
>! GET /v3/licenses.xml by - -
>! GET /v3/licenses.xml by SANDBOXKEY -
< 401 /<error-code>401</
> GET /v3/licenses.xml by WRONG sandboxtoken
< 403 <error-response><error-code>403</error-code><error-text>API key is not valid</error-text></error-response> => SOURCE_AUTH
>! GET /v3/licenses.xml by OTHERKEY othersandboxtoken
< /<licenses/
4.2-6: the licenses of another user are not listed
${USERS}
+ POST /_sandbox/grant {"guid":"9V7Q2X8W4T6Z1B5N0C3D","sku":"A","type":"online","code_use":"p+e"}
>! GET /v3/licenses.xml by SANDBOXKEY k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6
< /sku="A" .*code-use="p.e"/
> GET /v3/licenses.xml?sku=A by SANDBOXKEY ${READER}
< golden:licenses-none => {"licenses":[]}
3-3..4: duplicates are one copy, with the later expiration
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"A","type":"downloadable","expiration":"2016-01-01"}
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"A","type":"download","expiration":"Thu, 31 Dec 2099 23:59:59 GMT"}
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"A","type":"downloadable","expiration":"2030-01-01T00:00:00Z"}
>! GET /v3/licenses.xml?sku=A
< /<licenses><license [^>]*expiration="Thu, 31 Dec 2099 23:59:59 GMT"[^>]*><summary/
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"A","type":"downloadable","expiration":"never"}
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"A","type":"download","expiration":"2040-01-01"}
>! GET /v3/licenses.xml?sku=A
< /<licenses><license [^>]*expiration="never"[^>]*><summary/
2.3-1, 9-3: the name of a license has no characters that XML cannot hold
+ PUT /v4/assets/L-1 {"imprint_id":3,"title":"A \u0001title\ufffe of\u000b \ud83d\udcd6"}
+ POST /_sandbox/grant {"reference":"sandbox-reader","sku":"L-1"}
>! GET /v3/licenses.xml?sku=L-1
< /name="A title of 📖"/
2.3-1..2: a license may have other attributes, or child elements instead of attributes
> GET /v3/licenses.xml
~ <licenses><license sku="a" type="download" seats="4"></license></licenses> => {"licenses":[{"type":"downloadable","others":{"seats":"4"},"name":null}]}
~ <licenses><license><sku>a</sku><type>download</type><expiration>2016-03-10</expiration></license></licenses> => {"licenses":[{"sku":"a","type":"downloadable","expiresAt":${Date.UTC(2016, 2, 11)}}]}
~ <licenses><license><sku>a</sku><part_of/><seats>4</seats></license></licenses> => {"licenses":[{"sku":"a","partOf":null,"others":{"seats":"4"}}]}
~ <licenses><license sku="a" kind=""><sku>b</sku><kind>book</kind></license></licenses> => {"licenses":[{"sku":"a","kind":"book"}]}
~ <licenses><errors type="array"/><license sku="a" status="error"/></licenses> => {"licenses":[{"sku":"a","others":{"status":"error"}}]}
~ <licenses><license name="601: The access token" code-use="601" status="601" sku="a"/></licenses> => {"licenses":[{"sku":"a"}]}
4.2-5: licenses may be at any depth, or come without their root
> GET /v3/licenses.xml
~ <response><licenses><summary total_products="4"/><license sku="a"/></licenses></response> => {"licenses":[{"sku":"a"}],"total":4}
~ <license sku="a"/><license sku="b"/> => {"licenses":[{"sku":"a"},{"sku":"b"}]}
~ <summary total_products="0"/> => {"licenses":[],"total":0}
4.2-7: an answer with nothing but counts means that no license is held
> GET /v3/licenses.xml
~ <licenses></licenses> => {"licenses":[]}
~ <licenses xmlns="urn:a"/> => {"licenses":[]}
~ <licenses distributable_products="0" total_products="3"/> => {"licenses":[]}
~ <licenses><summary distributable_products="0" total_products="0"/></licenses> => {"licenses":[]}
~ <licenses><distributable_products>0</distributable_products><total_products>3</total_products></licenses> => {"licenses":[],"distributable":0,"total":3}
~ <licenses><summary><distributable_products>0</distributable_products><total_products>3</total_products></summary></licenses> => {"licenses":[],"distributable":0,"total":3}
4.2-9, 7-1: anything else inside a 200 is an error, because as “not licensed” it would sell a title twice
> GET /v3/licenses.xml
~ golden:error-650 => SERVICE_INVALID 650
~ application/xml => ${NONE}
~ <?xml version="1.0"?> => ${NONE}
~ <hash/> => ${NONE}
~ <licenses><error code="469" message="Already redeemed"/></licenses> => ${NONE} 469
~ <response><group><error code="469"/></group><licenses/></response> => ${NONE} 469
~ <error>Something failed</error> => ${NONE}
~ {"errors":["Something failed"]} => ${NONE}
~ <licenses>Try later</licenses> => ${NONE}
~ <licenses message="try later"/> => ${NONE}
~ <licenses code="470" message="Failed"/> => ${NONE}
~ <response><message>try later</message><licenses/></response> => ${NONE}
~ <licenses><summary message="try later" total_products="3"/></licenses> => ${NONE}
~ <licenses status="pending"/> => ${NONE}
~ <licenses truncated="true"/> => ${NONE}
~ <licenses total_products="many"/> => ${NONE}
~ <warning>down</warning><licenses/> => ${NONE}
~ <licenses><error/></licenses> => ${NONE}
~ <licenses><product sku="9780000000019" expiration="never"/></licenses> => ${NONE}
~ <licenses xmlns:l="u"><l:license sku="a" expiration="never"/></licenses> => ${NONE}
~ <licenses><License sku="a" expiration="never"/></licenses> => ${NONE}
~ <errors/> => ${NONE}
~ 404 application/xml => SOURCE_NOT_SERVICE
~ text/plain Service busy => ${NONE} "without licenses: “Service busy”"
~ text/plain New token: 9f8e7d6c5b4a for you => ${NONE} "without licenses: “New token: [secret] for you”"
`;
