import { golden, table } from './row.ts';
import { LEFT, READER, USERS } from './users.ts';

/* Credentials (2.4, 4.3): XML, to the byte. */

const OK = /<credential [^>]*>/.exec(golden('credentials-one-response'))?.[0] ?? '';
const FULL =
  '<credential email="full.user@example.com" access-token="p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3" guid="7Q2M9XW4TZ1B5N8C3DGK" reference=""/>';
const error = (code: number, message: string, reference = '', guid = '') =>
  `<error code="${code}" message="${message}" reference="${reference}" guid="${guid}" email=""></error>`;
const UNKNOWN = 'The reference value does not exist';
const AMBIGUOUS = 'The attributes name no user, or more than one';
const STALE = 'The access token is not valid any longer for the user';

export const CREDENTIALS = table`
2.4-1, 4.3-1..6, 4.3-9..10, 7-5..6, 9-3: credentials, good and failed, are in the order of the request
${USERS}
> POST /v3/credentials.xml golden:credentials-request
< golden:credentials-response => [{"ok":true,"reference":"reader-1","guid":"4T6Z1B5N0C3D7G2H8J4P","email":"reader-1@example.com","others":{}},
    {"ok":true,"reference":null,"accessToken":"p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3"},
    {"ok":true,"reference":"reader-2","accessToken":"k3m9v7q2x8w4t6z1b5n0c3d7g2h8j4p6"},
    {"ok":true,"reference":"reader-1","accessToken":"${READER}"},
    {"ok":true,"reference":"Tom & \"Jerry\" <é>","accessToken":"z1b5n0c3d7g2h8j4p6k3m9v7q2x8w4t6"},
    {"ok":false,"reference":"unknown & co","code":603,"message":"${UNKNOWN}"},{"ok":false,"reference":null,"code":601}]
4.3-9: a reference user is verified by its reference alone
${USERS}
> POST /v3/credentials.xml golden:credentials-one-request
< golden:credentials-one-response => [{"ok":true,"accessToken":"${READER}"}]
2.4-1, 4.3-5: a reference user is verified by token, reference, guid or any combination
${USERS}
> POST /v3/credentials.xml <credentials><credential guid="4T6Z1B5N0C3D7G2H8J4P"/><credential access-token="${READER}"/></credentials>
< <credentials>${OK}${OK}</credentials> => [{"reference":"reader-1"},{"reference":"reader-1"}]
> POST /v3/credentials.xml <credentials><credential reference="reader-1" guid="4T6Z1B5N0C3D7G2H8J4P"/></credentials>
< <credentials>${OK}</credentials> => [{"ok":true,"reference":"reader-1"}]
>! POST /v3/credentials.xml <credentials><credential guid="4T6Z1B5N0C3D7G2H8J4P" access-token="${READER}"/></credentials>
>! POST /v3/credentials.xml <credentials><credential reference="reader-1" guid="4T6Z1B5N0C3D7G2H8J4P" access-token="${READER}"/></credentials>
>! POST /v3/credentials.xml <credentials><credential reference="reader-1" guid="" access-token=""/></credentials>
>! POST /v3/credentials.xml <credentials><credential reference="reader-1" other="x"/></credentials>
< <credentials>${OK}</credentials>
2.4-3, 4.3-6: a full user is verified by token or guid, not by email or password
${USERS}
> POST /v3/credentials.xml <credentials><credential access-token="p6j4h8g2d7c3n0b5z1t6w4x8q2v7m9k3"/><credential guid="7Q2M9XW4TZ1B5N8C3DGK"/></credentials>
< <credentials>${FULL}${FULL}</credentials> => [{"ok":true,"reference":null},{"ok":true,"guid":"7Q2M9XW4TZ1B5N8C3DGK"}]
>! POST /v3/credentials.xml <credentials><credential email="full.user@example.com"/></credentials>
< /<error code="650" message="[^"]*email is not submitted/
>! POST /v3/credentials.xml <credentials><credential guid="7Q2M9XW4TZ1B5N8C3DGK" password="x"/></credentials>
>! POST /v3/credentials.xml <credentials><credential/></credentials>
< /<error code="650" /
4.3-5, 7-6: attributes that name two users, or one and none, name no user
${USERS}
> POST /v3/credentials.xml <credentials><credential reference="reader-2" guid="4T6Z1B5N0C3D7G2H8J4P"/></credentials>
< <credentials>${error(603, AMBIGUOUS, 'reader-2', '4T6Z1B5N0C3D7G2H8J4P')}</credentials> => [{"ok":false,"code":603}]
> POST /v3/credentials.xml <credentials><credential reference="reader-2" access-token="${READER}"/></credentials>
< <credentials>${error(603, AMBIGUOUS, 'reader-2')}</credentials> => [{"ok":false,"code":603}]
> POST /v3/credentials.xml <credentials><credential reference="unknown" access-token="${READER}"/></credentials>
< <credentials>${error(603, UNKNOWN, 'unknown')}</credentials> => [{"ok":false,"code":603}]
7-5..6: a stale or a wrong token is answered with 601, also next to the reference
${USERS}
>! POST /v3/credentials.xml <credentials><credential reference="left"/></credentials>
< /<credential .*reference="left"/
> POST /v3/credentials.xml <credentials><credential reference="left" access-token="${LEFT}"/></credentials>
< <credentials>${error(601, STALE, 'left')}</credentials> => [{"ok":false,"code":601}]
> POST /v3/credentials.xml <credentials><credential reference="reader-2" access-token="x"/></credentials>
< <credentials>${error(601, STALE, 'reader-2')}</credentials> => [{"ok":false,"code":601}]
4.3-2, 4.3-8, 5-6: a user of another key is unknown, and its token is not repeated
> POST /v3/credentials.xml <credentials><credential reference="user-0000001"/></credentials> by OTHERKEY
< <credentials>${error(603, UNKNOWN, 'user-0000001')}</credentials> => [{"ok":false,"code":603}]
> POST /v3/credentials.xml <credentials><credential access-token="sandboxtoken"/></credentials> by OTHERKEY
< <credentials>${error(603, AMBIGUOUS)}</credentials> => [{"ok":false,"code":603}]
> POST /v3/credentials.xml <credentials><credential reference="other-user-0000001"/></credentials>
< <credentials>${error(603, UNKNOWN, 'other-user-0000001')}</credentials> => [{"ok":false,"code":603}]
> POST /v3/credentials.xml <credentials><credential access-token="othersandboxtoken"/></credentials>
< <credentials>${error(603, AMBIGUOUS)}</credentials> => [{"ok":false,"code":603}]
> POST /v3/credentials.xml <credentials><credential guid="4T6Z1B5N0C3D7G2H8J4P"/></credentials> by OTHERKEY
< <credentials>${error(603, UNKNOWN, '', '4T6Z1B5N0C3D7G2H8J4P')}</credentials> => [{"ok":false,"code":603}]
+ POST /_sandbox/user {"reference":"reader-1","guid":"4T6Z1B5N0C3D7G2H8J4P"}
>! POST /v3/credentials.xml <credentials><credential reference="other-user-0000001"/><credential access-token="othersandboxtoken"/></credentials> by OTHERKEY
< /<credential [^>]*reference="other-user-0000001".><credential [^>]*reference="other-reader"/
4.3-2: credentials need the API key, but no access token
>! POST /v3/credentials.xml <credentials><credential reference="user-0000001"/></credentials> by -
< 401 /<error-code>401</
> POST /v3/credentials.xml <credentials><credential reference="user-0000001"/></credentials> by WRONG
< 403 <error-response><error-code>403</error-code><error-text>API key is not valid</error-text></error-response> => SERVICE_FORBIDDEN
4.3-3: a request that is not credentials is malformed
>! POST /v3/credentials.xml
>! POST /v3/credentials.xml <credentials/>
>! POST /v3/credentials.xml <credential reference="user-0000001"/>
>! POST /v3/credentials.xml <credentials><credential reference="a"/></credentials><credentials/>
>! POST /v3/credentials.xml <credentials><credential reference="a"/><user/></credentials>
>! POST /v3/credentials.xml {"credentials":[]}
>! POST /v3/credentials.xml <credentials><credential reference="a"></credentials>
>! POST /v3/credentials.xml <credentials><credential reference="a" reference="b"/></credentials>
< 400 /<error-code>650<.error-code><error-text>Malformed credentials request: /
4.3-4: credentials may have other attributes, child elements, or no root
> POST /v3/credentials.xml <credentials><credential reference="a"/></credentials>
~ <credentials><credential reference="a" guid="G" access-token="t"/><errors></errors></credentials> => [{"ok":true}]
~ <credentials><credential reference="a" access-token="t" email_verification_required="true"/></credentials> => [{"ok":true,"others":{"email_verification_required":"true"}}]
~ <credential reference="a" guid="G" access-token="t" email=""/> => [{"ok":true,"reference":"a"}]
> POST /v3/credentials.xml <credentials><credential reference="r0"/><credential reference="r1"/><credential reference="r2"/></credentials>
~ <credentials><error><code>603</code><message>m</message><reference>r2</reference></error><error><code>601</code><message>m</message><reference>r1</reference></error>
    <credential guid=""><reference>r0</reference><guid>G</guid><access-token>t</access-token><email>e</email><plan>x</plan></credential></credentials>
     => [{"ok":true,"reference":"r0","guid":"G","accessToken":"t","email":"e","others":{"plan":"x"}},{"code":601},{"code":603}]
4.3-4: a credential in another spelling, or in one of several lists, is unclear
> POST /v3/credentials.xml <credentials><credential reference="User5"/><credential reference="b"/></credentials>
~ <credentials><credential reference="user5" access-token="t"/><credential reference="b" access-token="u"/></credentials> => [{"ok":false,"code":null,"reference":"User5"},{"ok":true}]
> POST /v3/credentials.xml <credentials><credential access-token="t0"/><credential access-token="t1"/></credentials>
~ <credentials><credential guid="G" access-token="n1"/><list><error code="601" message="m"/></list></credentials> => [{"ok":false,"code":null},{"ok":false,"code":null}]
7-6: the refusal of one account is its result
> POST /v3/credentials.xml <credentials><credential reference="a"/></credentials>
~ <error code="603" message="no such reference"/> => [{"ok":false,"code":603,"reference":"a"}]
~ 404 <error-response><error-code>603</error-code><error-text>no</error-text></error-response> => [{"ok":false,"code":603,"reference":"a"}]
~ 404 <credentials><error code="603" message="no" reference="a" guid="" email=""/></credentials> => [{"ok":false,"code":603,"reference":"a"}]
~ <credentials><error><code>603</code><message>no</message></error></credentials> => [{"ok":false,"code":603,"reference":"a"}]
~ 603 application/xml => [{"ok":false,"code":603,"reference":"a"}]
4.3-4, 7-2: the refusal of the whole request is an error
> POST /v3/credentials.xml <credentials><credential reference="a"/></credentials>
~ 400 golden:error-650 => SERVICE_INVALID 650
~ <credentials><error code="650" message="malformed"/></credentials> => SERVICE_INVALID 650
~ <credentials><error code="401" message="invalid api key"/></credentials> => SOURCE_AUTH 401
~ 403 application/xml => SERVICE_FORBIDDEN
~ 200 <error code="403" message="API key is not valid"/> => SERVICE_FORBIDDEN hint "Check apiKey: the key is invalid, or lacks the permission."
~ 403 <error code="403" message="API key is not valid"/> => SERVICE_FORBIDDEN hint "Check apiKey: the key is invalid, or lacks the permission."
~ application/xml => SERVICE_ERROR
~ <credentials><message>The service is down</message></credentials> => SERVICE_ERROR
~ <response><message>The service is down</message></response> => SERVICE_ERROR
~ <credentials>650: malformed</credentials> => SERVICE_ERROR
> POST /v3/credentials.xml <credentials><credential reference="a"/><credential access-token="secrettoken"/></credentials>
secret secrettoken
~ golden:error-650 => SERVICE_INVALID 650
~ <credentials><error code="470" message="x"/></credentials> => 470
~ <credentials><error code="401" message="invalid api key"/><error code="401" message="invalid api key"/></credentials> => SOURCE_AUTH 401
~ <credentials><message>The service is down</message></credentials> => SERVICE_ERROR
~ <response>650: malformed</response> => SERVICE_ERROR
~ <credentials></credentials> => SERVICE_ERROR "did not answer for any of the credentials 1 to 2"
`;
