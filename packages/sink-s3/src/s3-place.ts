import { decoded } from '@catchword/base/percent-decode';

/** Where the objects of an `s3:` address are. The endpoint of an address that is not valid is that of AWS. */
export function s3Place(url: URL) {
  const { endpoint = '', region = 'us-east-1' } = Object.fromEntries(url.searchParams);
  const prefix = decoded(url.pathname).replace(/^\/+|\/+$/g, '');
  return {
    bucket: url.hostname,
    /** Begins the key of each object; empty, or ends with a slash. */
    prefix: prefix === '' ? '' : `${prefix}/`,
    endpoint: new URL(URL.canParse(endpoint) ? endpoint : `https://s3.${region}.amazonaws.com`),
    region,
  };
}
