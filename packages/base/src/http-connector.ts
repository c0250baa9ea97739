import { subscribe } from 'node:diagnostics_channel';
import { request } from 'node:http';
import type { LookupFunction, Socket } from 'node:net';
import { messageOf, systemCodeOf } from './errors.ts';
import { ADDRESS_MS } from './lifecycle.ts';
import { unbracketed } from './loopback.ts';
import { authorityOf, type HttpProxy, proxyError } from './proxy.ts';
import { buildConnector } from './undici.ts';

/*
 * Some servers answer `100 Continue` to every POST, or let a proxy do so, although nothing asked for it. HTTP allows that,
 * and a client has to ignore it (RFC 9110, 15.2). undici takes it for a broken answer and closes the connection, each time.
 * So it is removed before undici sees it: at the start of an answer only, never within a body.
 */

const CONTINUE = 'HTTP/1.1 100';
/** Limit of undici for the headers of an answer. */
const MAX_HEAD_BYTES = 16_384;

/** Sockets whose next bytes begin an answer, with the bytes that have arrived. */
const beginnings = new WeakMap<object, Buffer>();

/** How many bytes of `head` are a `100 Continue`; null if that cannot be told yet. */
function continueLength(head: Buffer): number | null {
  const start = head.toString('latin1', 0, CONTINUE.length);
  if (start !== CONTINUE) return CONTINUE.startsWith(start) ? null : 0;
  const end = /\r?\n\r?\n/.exec(head.toString('latin1'));
  if (end === null) return head.length > MAX_HEAD_BYTES ? 0 : null;
  return end.index + end[0].length;
}

/** Removes every `100 Continue` from the beginning of each answer. */
function skipContinue(socket: Socket): void {
  const push = socket.push.bind(socket);
  socket.push = (piece: Buffer | null) => {
    let head = beginnings.get(socket);
    if (head === undefined) return push(piece);
    if (piece !== null) {
      head = head.length === 0 ? piece : Buffer.concat([head, piece]);
      let length = continueLength(head);
      for (; length !== null && length > 0; length = continueLength(head)) head = head.subarray(length);
      beginnings.set(socket, head);
      // Reads on.
      if (length === null) return true;
    }
    beginnings.delete(socket);
    const isReading = head.length === 0 || push(head);
    return piece === null ? push(null) : isReading;
  };
}

let isListening = false;

/** Notes when undici sends a request: an answer to it begins next. */
function listen(): void {
  if (isListening) return;
  isListening = true;
  subscribe('undici:client:sendHeaders', (message) => {
    const { socket } = message as { readonly socket: object };
    beginnings.set(socket, Buffer.alloc(0));
  });
}

interface ConnectOptions {
  readonly timeout?: number;
  /** Judges the addresses of the target, also before a proxy connects to it. */
  readonly lookup?: LookupFunction;
  readonly ca?: string;
  readonly allowH2?: boolean;
}

type Own = (socket: Socket) => void;

function openerOf(options: ConnectOptions, own: Own): buildConnector.connector {
  // The connector returns the socket; its type leaves that out.
  const open = buildConnector({ ...options, autoSelectFamilyAttemptTimeout: ADDRESS_MS }) as (
    ...args: Parameters<buildConnector.connector>
  ) => Socket;
  return ({ hostname, ...target }, callback) => own(open({ ...target, hostname: unbracketed(hostname) }, callback));
}

/** Connects to the proxy, which then gets requests for http as they are, and for https is asked for a tunnel. */
function openerThrough(proxy: HttpProxy, { lookup, ...options }: ConnectOptions, own: Own): buildConnector.connector {
  const open = openerOf(options, own);
  const { hostname, host, protocol, port } = proxy.url;
  return (target, callback) => {
    const authority = authorityOf({ host: target.hostname, ...target });
    const fail = (answer: number | string): void => callback(proxyError(proxy, authority, answer), null);
    const tunnelIn = (socket: Socket): void => {
      const headers = { host: authority, ...proxy.headers };
      const asked = request({ createConnection: () => socket, method: 'CONNECT', path: authority, headers });
      // undici's time limits are over, or have not begun.
      asked.setTimeout(options.timeout ?? 0, () => asked.destroy(new Error('it does not answer')));
      asked.on('error', (error) => fail(systemCodeOf(error) ?? messageOf(error)));
      asked.on('connect', ({ statusCode = 0 }, tunnel: Socket) => {
        tunnel.setTimeout(0);
        if (statusCode >= 200 && statusCode <= 299) return open({ ...target, httpSocket: tunnel }, callback);
        tunnel.destroy();
        fail(statusCode);
      });
      asked.end();
    };
    const ask = (): void =>
      open({ hostname, host, protocol, port }, (...[error, socket]) => {
        if (error !== null) fail(systemCodeOf(error) ?? messageOf(error));
        else if (target.protocol === 'https:') tunnelIn(socket);
        else callback(null, socket);
      });
    if (lookup === undefined) return ask();
    lookup(unbracketed(target.hostname), { all: true }, (unfit) => {
      const code = systemCodeOf(unfit);
      const why = 'so its addresses cannot be judged; #allow=private leaves that to the proxy';
      if (code !== undefined)
        callback(new Error(`${target.hostname} cannot be looked up here (${code}), ${why}`), null);
      else if (unfit === null) ask();
      else callback(unfit, null);
    });
  };
}

/** @param own gets each socket before it is connected, because undici does not destroy a socket that is being connected */
export function httpConnector(
  options: ConnectOptions,
  own: Own = () => {},
  proxy: HttpProxy | null = null,
): buildConnector.connector {
  listen();
  const openerWith = (given: ConnectOptions) =>
    proxy === null ? openerOf(given, own) : openerThrough(proxy, given, own);
  const [connect, connectAny] = [openerWith(options), openerWith({ ...options, allowH2: true })];
  return (target, callback) => {
    const onEnd: buildConnector.Callback = (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      skipContinue(socket);
      callback(null, socket);
    };
    connect(target, (...ended) => {
      // A server that speaks HTTP/2 alone. Others get HTTP/1.1, which undici has spoken for longer.
      if (systemCodeOf(ended[0]) === 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL') connectAny(target, onEnd);
      else onEnd(...ended);
    });
  };
}
