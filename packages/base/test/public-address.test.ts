import { isPublic } from '@catchword/base/public-address';
import { expect, it } from 'vitest';

/*
 * A row for each row of IANA's "IPv4 Special-Purpose Address Registry" and "IPv6 Special-Purpose Address Registry" (as of
 * 2025-10): the block, whether it is globally reachable, and addresses in it, the first and the last among them.
 */
const V4: readonly (readonly [block: string, reachable: boolean, ...addresses: string[]])[] = [
  ['0.0.0.0/8 this network', false, '0.0.0.0', '0.255.255.255'],
  ['10.0.0.0/8 private use', false, '10.0.0.0', '10.255.255.255'],
  ['100.64.0.0/10 shared, behind a carrier', false, '100.64.0.0', '100.127.255.255'],
  ['127.0.0.0/8 loopback', false, '127.0.0.0', '127.255.255.255'],
  ['169.254.0.0/16 link local', false, '169.254.0.0', '169.254.169.254', '169.254.255.255'],
  ['172.16.0.0/12 private use', false, '172.16.0.0', '172.31.255.255'],
  ['192.0.0.0/24 protocol assignments', false, '192.0.0.0', '192.0.0.8', '192.0.0.170', '192.0.0.255'],
  ['192.0.2.0/24 documentation', false, '192.0.2.0', '192.0.2.255'],
  ['192.31.196.0/24 AS112', true, '192.31.196.0', '192.31.196.255'],
  ['192.52.193.0/24 AMT', true, '192.52.193.0', '192.52.193.255'],
  ['192.88.99.0/24 6to4 relays, deprecated', false, '192.88.99.0', '192.88.99.255'],
  ['192.168.0.0/16 private use', false, '192.168.0.0', '192.168.255.255'],
  ['192.175.48.0/24 AS112', true, '192.175.48.0', '192.175.48.255'],
  ['198.18.0.0/15 benchmarking', false, '198.18.0.0', '198.19.255.255'],
  ['198.51.100.0/24 documentation', false, '198.51.100.0', '198.51.100.255'],
  ['203.0.113.0/24 documentation', false, '203.0.113.0', '203.0.113.255'],
  ['240.0.0.0/4 reserved', false, '240.0.0.0', '255.255.255.254'],
  ['255.255.255.255/32 broadcast', false, '255.255.255.255'],
  ['224.0.0.0/4 multicast', false, '224.0.0.0', '239.255.255.255'],
  // The nearest server answers these: one of our own network.
  ['192.0.0.9/32 and 192.0.0.10/32 anycast of PCP and TURN', false, '192.0.0.9', '192.0.0.10'],
  ['everything else', true, '1.1.1.1', '9.255.255.255', '100.128.0.0', '172.32.0.0', '192.0.1.0', '223.255.255.255'],
];
const V6: typeof V4 = [
  ['::1/128 loopback', false, '::1'],
  ['::/128 unspecified', false, '::'],
  ['100::/64 discard', false, '100::', '100::ffff:ffff:ffff:ffff'],
  ['100:0:0:1::/64 dummy prefix', false, '100:0:0:1::', '100:0:0:1:ffff:ffff:ffff:ffff'],
  ['2001::/23 protocol assignments', false, '2001:1::', '2001:5::', '2001:100::', '2001:1ff:ffff::'],
  ['2001:1::1 to 2001:1::3 anycast of PCP, TURN and DNS-SD', false, '2001:1::1', '2001:1::2', '2001:1::3'],
  ['2001:2::/48 benchmarking', false, '2001:2::', '2001:2:0:ffff::'],
  ['2001:3::/32 AMT', true, '2001:3::', '2001:3:ffff::'],
  ['2001:4:112::/48 AS112', true, '2001:4:112::', '2001:4:112:ffff::'],
  ['2001:10::/28 ORCHID, deprecated', false, '2001:10::', '2001:1f:ffff::'],
  ['2001:20::/28 ORCHIDv2', true, '2001:20::', '2001:2f:ffff::'],
  ['2001:30::/28 drones', true, '2001:30::', '2001:3f:ffff::'],
  ['2001:db8::/32 documentation', false, '2001:db8::', '2001:db8:ffff::'],
  ['2620:4f:8000::/48 AS112', true, '2620:4f:8000::', '2620:4f:8000:ffff::'],
  ['3fff::/20 documentation', false, '3fff::', '3fff:fff:ffff::'],
  ['5f00::/16 segment routing', false, '5f00::', '5f00:ffff::'],
  ['fc00::/7 unique local', false, 'fc00::', 'fdff:ffff::'],
  ['fe80::/10 link local', false, 'fe80::', 'febf:ffff::', 'fe80::1%eth0'],
  ['fec0::/10 site local, deprecated', false, 'fec0::', 'feff:ffff::'],
  ['ff00::/8 multicast', false, 'ff00::', 'ff02::1', 'ffff:ffff::'],
  ['blocks that IANA has not assigned', false, '1::1', '200::1', '1fff::1', '4000::1', '8000::1', 'e000::1'],
  ['everything else', true, '2001:200::', '2001:4860:4860::8888', '2a00:1450:4001:81b::200e', '2606:4700::1111'],
];

const ROWS = [...V4, ...V6].map(([block, reachable, ...addresses]) => ({ block, reachable, addresses }));

it.each(ROWS)('an address of $block is public: $reachable', ({ reachable, addresses }) => {
  expect(addresses.map((address) => [address, isPublic(address)])).toEqual(addresses.map((one) => [one, reachable]));
});

/** An IPv4 address as two groups of an IPv6 address. */
function groups(v4: string, mask = 0): string {
  const [a = 0, b = 0, c = 0, d = 0] = v4.split('.').map((byte) => Number(byte) ^ mask);
  return [a * 256 + b, c * 256 + d].map((group) => group.toString(16)).join(':');
}

const EMBEDDING: Readonly<Record<string, (v4: string) => string>> = {
  'mapped (::ffff:a.b.c.d)': (v4) => `::ffff:${v4}`,
  'mapped, in hexadecimal': (v4) => `0:0:0:0:0:ffff:${groups(v4)}`,
  'NAT64 (64:ff9b::/96)': (v4) => `64:ff9b::${v4}`,
  '6to4 (2002::/16)': (v4) => `2002:${groups(v4)}::1`,
  'Teredo client (2001::/32)': (v4) => `2001:0:4136:e378:8000:63bf:${groups(v4, 255)}`,
  'Teredo server': (v4) => `2001:0:${groups(v4)}:8000:63bf:${groups('8.8.8.8', 255)}`,
  'ISATAP of a private IPv4': (v4) => `2a00:1450:1:2:0:5efe:${groups(v4)}`,
  'ISATAP of a unique IPv4': (v4) => `2a00:1450:1:2:200:5efe:${groups(v4)}`,
};

it.each(Object.entries(EMBEDDING))('an IPv6 address that embeds IPv4 is as public as that: %s', (_form, embed) => {
  const rows = V4.flatMap(([, reachable, ...addresses]) => addresses.map((v4) => [embed(v4), reachable] as const));
  expect(rows.map(([address]) => [address, isPublic(address)])).toEqual(rows);
});

it('an IPv6 address is not public if only its translator knows the IPv4 address in it', () => {
  const translated = [
    '64:ff9b:1::8.8.8.8',
    '64:ff9b:1:808:8:800::',
    '::808:808',
    '::10.0.0.1',
    '::ffff:0:8.8.8.8',
    'fd00::5efe:8.8.8.8',
  ];
  expect(translated.filter(isPublic)).toEqual([]);
});

it('a text that is not an address is not public', () => {
  expect(['', 'localhost', '8.8.8.8.8', '[2606:4700::1111]', '2606:4700::1111::'].filter(isPublic)).toEqual([]);
});
