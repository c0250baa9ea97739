/** Chunks in which pages are packed and unpacked. With the default, 16 kB, a page takes up to four times as long. Bytes. */
export const GZIP_CHUNK = 256 * 1024;

/** The most bytes that a page may have once it is unpacked, from the service or from a queue. For safety: gzip makes a megabyte of a kilobyte. */
export const MOST_UNPACKED = 64 * 2 ** 20;
