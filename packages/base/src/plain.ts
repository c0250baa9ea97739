/**
 * Whether CATCHWORD_PLAIN=1 turns the accelerators off: the second thread (sync/fast/page-worker-client.ts), the comparison
 * of whole pages (sync/fast/unchanged-items.ts), the insertion of whole pages (sync/fast/new-rows.ts), and the texts of events
 * that SQLite makes (store/history/history.ts). Each must give what the plain way gives: tests run both ways.
 */
export const isPlain: boolean = process.env.CATCHWORD_PLAIN === '1';
