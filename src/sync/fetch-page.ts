import type { CatalogClient } from '../client/client.ts';
import type { ReadWindow } from '../queue/queue.ts';
import { validatePage } from './validate-page.ts';

/** One request, one page: what both queues run, whoever decides about trying again. */
export function createReadWindow(client: CatalogClient): ReadWindow {
  return async (task, signal) => {
    const response = await client.readPage(task, signal);
    return { page: validatePage(response.text, task.window), response };
  };
}
