/**
 * How long each address of a host is tried before the next one; milliseconds. Node.js allows 250, so a server on another
 * continent could never be reached from a network without a route for its other address.
 */
export const ADDRESS_MS = 3_000;
