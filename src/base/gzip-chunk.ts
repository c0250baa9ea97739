/** Chunks in which pages are packed and unpacked. With the default, 16 kB, a page takes up to four times as long. Bytes. */
export const GZIP_CHUNK = 256 * 1024;
