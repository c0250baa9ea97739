import { CatchwordError } from '@catchword/base/errors';
import type { FetchTask, Page } from '@catchword/catalog/page-types';
import { isProbablyKnown, unchangedPage } from '@catchword/catalog/unchanged-page';
import { type KnownProductsFile, openKnownProducts } from '../../store/rows/known-products.ts';

/**
 * Validates pages by comparing them with the mirror at `path`, which this process has opened, too. The file is opened when
 * it is needed.
 */
export function createPageComparer(path: string) {
  let mirror: KnownProductsFile | undefined;
  return {
    /** @returns null if comparing does not save parsing the page. @throws CatchwordError PAGE_INVALID */
    compare: (bytes: Uint8Array<ArrayBuffer>, task: FetchTask): Page | null => {
      if (!isProbablyKnown(task)) return null;
      try {
        mirror ??= openKnownProducts(path);
        return mirror.incarnation === task.mirror
          ? mirror.read((known) => unchangedPage(bytes, task.window, known))
          : null;
      } catch (error) {
        if (error instanceof CatchwordError) throw error;
        // The keeper reads the same file, and names the problem.
        return null;
      }
    },
    close: (): void => mirror?.close(),
  };
}
