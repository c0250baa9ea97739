import { table } from './row.ts';

/* Users (4.5), whose form is not shown: XML, to the byte. */

export const READER = 'f7d2k9s4m1x8q3w6v5t0z2b7n4c9g1h3';
export const LEFT = 'a0a1a2a3a4a5a6a7a8a9b0b1b2b3b4b5';
/** The users of the golden files. The token of `left` is stale. */
export const USERS =
  `+ POST /_sandbox/user {"reference":"reader-1","email":"reader-1@example.com","guid":"4T6Z1B5N0C3D7G2H8J4P","access_token":"${READER}"}
+ POST /_sandbox/user {"email":"full.user@example.com","guid":"7Q2M9XW4TZ1B5N8C3DGK","access_token":"p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3"}
+ POST /_sandbox/user {"reference":"reader-2","email":"reader-2@example.com","guid":"9V7Q2X8W4T6Z1B5N0C3D","access_token":"k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6"}
+ POST /_sandbox/user {"reference":"Tom & "Jerry" <é>","email":"tom@example.com","guid":"2H8J4P6K3M9V7Q2X8W4T","access_token":"z1b5n0c3d7g2h8j4p6k3m9v7q2x8w4t6"}
+ POST /_sandbox/user {"reference":"left","email":"left@example.com","guid":"LEFTLEFT","access_token":"${LEFT}"}
+ POST /_sandbox/expire {"reference":"left"}`.replaceAll('"Jerry"', String.raw`\"Jerry\"`);

const PUPIL =
  '{"reference":"pupil-7","firstName":"Élodie","lastName":"Dubois & Fils","email":"pupil-7@example.com","guid":"5N8C3DGK7Q2M9XW4TZ1B","accessToken":"q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7","others":{}}';
const NAMES = '<first-name>A</first-name><last-name>B</last-name>';
const CREATE = `POST /v3/users.xml <user><reference>r</reference>${NAMES}</user>`;
const FULL = '<user><email>ada@example.com</email><password>correct horse</password></user>';
const LOOK = 'hint "Look for it before you retry"';
const failed = (code: number, text: string) =>
  `<error-response><error-code>${code}</error-code><error-text>${text}</error-text></error-response>`;

export const USER_ROWS = table`
4.5-8, 9-3: a user is created with a reference
> POST /v3/users.xml golden:user-reference-request
generated email guid access-token
< golden:user-reference-response => ${PUPIL}
4.5-8: a user is created with email and password, which is not returned
> POST /v3/users.xml golden:user-full-request
generated guid access-token
< golden:user-full-response => {"email":"ada@example.com","reference":null,"guid":"1B5N8C3DGK7Q2M9XW4TZ"}
4.5-8: a user is read by reference, guid or email
+ POST /_sandbox/user {"reference":"pupil-7","first_name":"Élodie","last_name":"Dubois & Fils","email":"pupil-7@example.com","guid":"5N8C3DGK7Q2M9XW4TZ1B","access_token":"q2x8w4t6z1b5n0c3d7g2h8j4p6k3m9v7"}
> GET /v3/users.xml/pupil-7
> GET /v3/users.xml/5N8C3DGK7Q2M9XW4TZ1B
> GET /v3/users.xml/pupil-7%40example.com
< golden:user-reference-response => ${PUPIL}
>! GET /v3/users/pupil-7
< golden:user-reference-response
4.5-8, 7-7: an unknown user is answered with 474, and so is one of another key
> GET /v3/users.xml/none
> GET /v3/users.xml/user-0000001 by OTHERKEY
< 404 golden:error-474 => SERVICE_UNKNOWN_USER 474
2.4-2, 4.3-9: a reference is unique among the users of a key
+ POST /v3/users.xml <user><reference>r</reference></user>
> ${CREATE}
> POST /v3/users.xml <user><reference>user-0000001</reference>${NAMES}</user>
> POST /v3/users.xml <user><reference>sandbox-reader</reference>${NAMES}</user>
< 409 golden:error-904 => SERVICE_INVALID 904
>! POST /v3/users.xml <user><reference>r</reference></user> by OTHERKEY
< /<reference>r</
2.4-2: an email is unique, in any spelling
+ POST /v3/users.xml <user><reference>r</reference><email>Ada@example.com</email></user>
> POST /v3/users.xml <user><email>adA@EXAMPLE.com</email><password>p</password>${NAMES}</user>
< 409 ${failed(904, 'The email is already in use')} => SERVICE_INVALID 904
+ 409 POST /v3/users.xml <user><reference>r</reference><email>b@example.com</email></user>
>! GET /v3/users.xml/r
< /<email>Ada@example.com</
4.5-8: a password is not returned, nor repeated in an error
+ POST /v3/users.xml ${FULL}
>! GET /v3/users.xml/ada@example.com
< /^(?![^]*correct horse)[^]*<email>ada@example.com</
>! POST /v3/users.xml ${FULL}
< 409 ${failed(904, 'The email is already in use')}
>! POST /v3/users.xml <user><password>correct horse</password></user>
< 422 ${failed(650, 'reference: is required, or an email and a password')}
>! POST /v3/users.xml <user><reference>s</reference><password>correct horse</password></user>
< 422 ${failed(650, 'password: is not allowed for a reference user')}
4.5-8: the fields of a new user are checked
>! POST /v3/users.xml <user></user>
< 422 /<error-code>650<.error-code><error-text>reference: /
>! POST /v3/users.xml <user><email>a@example.com</email></user>
< 422 /<error-code>650<.error-code><error-text>password: /
>! POST /v3/users.xml <user><email>ada</email><password>p</password></user>
< 422 /<error-code>650<.error-code><error-text>email: /
>! POST /v3/users.xml
>! POST /v3/users.xml <users/>
>! POST /v3/users.xml <user><reference>a</reference><reference>b</reference></user>
>! POST /v3/users.xml <!DOCTYPE user><user><reference>a</reference></user>
< 400 /<error-code>650</
7-1, 7-7: a redemption code that fails is an error inside a 200
> POST /v3/users.xml <user><reference>r</reference>${NAMES}<redemption-code>SANDBOX-USED</redemption-code></user>
< ${failed(469, 'The redemption code is already redeemed')} => SERVICE_ERROR 469
> POST /v3/users.xml <user><reference>r</reference>${NAMES}<redemption-code>SANDBOX-FAILED</redemption-code></user>
< ${failed(470, 'The redemption failed')} => SERVICE_ERROR 470
> POST /v3/users.xml <user><reference>r</reference>${NAMES}<redemption-code>NOSUCHCODE</redemption-code></user>
< ${failed(468, 'The redemption code is not valid')} => SERVICE_ERROR 468
4.5-8: a reference may have any character
+ POST /v3/users.xml <user><reference>a/b c&amp;d</reference></user>
>! GET /v3/users/a%2Fb%20c%26d
< /<reference>a.b c&amp;d</
4.5-9, 5-7: a reset needs a key and a token of this key, which may be stale
>! POST /v3/users/reset_access.xml by SANDBOXKEY -
< 401 /<error-code>401</
>! POST /v3/users/reset_access.xml by SANDBOXKEY never
>! POST /v3/users/reset_access.xml by OTHERKEY sandboxtoken
< 404 golden:error-474
+ 404 POST /v3/users/reset_access.xml by OTHERKEY sandboxtoken
>! POST /v3/credentials.xml <credentials><credential reference="sandbox-reader"/></credentials>
< /access-token="sandboxtoken"/
+ POST /_sandbox/expire {"reference":"sandbox-reader"}
+ POST /v3/users/reset_access.xml
>! POST /v3/users/reset_access.xml
< /<user><guid>/
4.5-8: a user may have further fields, and come in any of these layouts
> ${CREATE}
~ <user guid="G"><survey-option>true</survey-option><last-name/></user> => {"guid":"G","lastName":null,"others":{"survey-option":"true"}}
~ <user><guid>G</guid><access-token>t</access-token><errors/></user> => {"guid":"G","accessToken":"t"}
~ <response><status>200</status><user><guid>G</guid><access-token>t</access-token></user></response> => {"guid":"G","accessToken":"t"}
~ <users><status>200</status><user><guid>G</guid><access-token>t</access-token></user></users> => {"guid":"G","accessToken":"t"}
~ <data><status>200</status><user><guid>G</guid><access-token>t</access-token></user></data> => {"guid":"G","accessToken":"t"}
> GET /v3/users.xml/x
~ <guid>G</guid><reference>x</reference><role>pupil</role> => {"guid":"G","reference":"x","others":{"role":"pupil"}}
7-1: an answer to a read that is not the user is an error
> GET /v3/users.xml/x
~ <user><error code="469" message="redeemed"/></user> => 469
~ golden:error-469 => 469
~ <nothing/> => SERVICE_ERROR
~ <user/> => SERVICE_ERROR "without user"
~ <user><first-name>Ada</first-name></user> => SERVICE_ERROR
~ <user code="601" message="bad" reference="x"/> => SERVICE_ERROR
~ <user><code>470</code><description>failed</description></user> => SERVICE_ERROR
~ <user><guid>G</guid><errors><error code="470"/></errors></user> => 470
~ <guid>G</guid><error code="470"/> => 470
~ <response><user><guid>G</guid></user><error code="470"/></response> => 470
~ <users><user><guid>G</guid></user><error code="470"/></users> => 470
~ <data><user><guid>G</guid></user><error code="470"/></data> => 470
~ golden:user-reference-response => SERVICE_ERROR "answered with another user instead of the one asked for"
~ <users><user><guid>x</guid></user><user><guid>G</guid></user></users> => SERVICE_ERROR "answered with 2 users instead of the one asked for"
4.5-8: an answer to a creation that is not a user is an error with its words, and without tokens and emails
> ${CREATE}
secret abcdefghij ada@x.org
~ <user><message>email is already taken</message></user> => SERVICE_ERROR "answered without user: " ${LOOK}
~ <message>email is already taken</message> => SERVICE_ERROR "answered without user: " ${LOOK}
~ <response><message>email is already taken</message></response> => SERVICE_ERROR "answered without user: " ${LOOK}
~ <user message="email is already taken"/> => SERVICE_ERROR "answered without user: " ${LOOK}
~ <user>email is already taken</user> => SERVICE_ERROR "answered without user: " ${LOOK}
~ <response><account><guid>g1</guid><access-token>abcdefghij</access-token><email>ada@x.org</email></account></response> => SERVICE_ERROR /without user: .*account/
~ <User><token>abcdefghij</token><value>abcdefghij</value><login>ada@x.org</login></User> => SERVICE_ERROR /without user: .*token/
~ <user><first-name>Ada</first-name><session token="abcdefghij">abcdefghij</session></user> => SERVICE_ERROR /without user: .*session/
~ <token>abcdefghij</token><login email="ada@x.org"/> => SERVICE_ERROR /without user: .*token/
~ <response><user><guid>G7</guid><access-token>abcdefghij</access-token></user><error code="469" message="redeemed"/></response> => SERVICE_ERROR 469 "guid G7 may exist" hint "G7"
> GET /v3/users.xml/x
secret abcdefghij
~ <response><user><guid>G7</guid><access-token>abcdefghij</access-token></user><error code="469" message="redeemed"/></response> => 469 /^(?!.*G7)/
4.5-8: a user may exist if it is not in the answer to a creation
> ${CREATE}
~ 201 application/xml => SERVICE_ERROR ${LOOK}
~ 201 text/plain Created => SERVICE_ERROR ${LOOK}
~ 201 <response><status>success</status></response> => SERVICE_ERROR ${LOOK}
~ 201 application/json {"user":{"reference":"x"}} => SERVICE_ERROR ${LOOK}
> GET /v3/users.xml/x
~ 201 application/xml => SERVICE_ERROR hint /^(?!.*created)/
~ 201 text/plain Created => SERVICE_ERROR hint /^(?!.*created)/
~ 201 application/json {"user":{"reference":"x"}} => SERVICE_ERROR hint /^(?!.*created)/
4.5-8: an error does not show the password that the service repeats
> POST /v3/users.xml <user><email>a@example.com</email><password>correct &lt;horse&gt;</password>${NAMES}</user>
secret correct
~ <error code="468" message="no: correct &lt;horse&gt; is too weak"/> => SERVICE_ERROR 468 "[secret] is too weak"
~ 422 <error code="468" message="no: correct &lt;horse&gt; is too weak"/> => 468 "[secret] is too weak"
~ 422 "correct <horse> is too weak" => SERVICE_INVALID "[secret] is too weak"
`;
