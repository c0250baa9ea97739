import type { Asset } from '../assets/asset.ts';
import { assetCreation, assetUpdate } from '../assets/fields.ts';
import { assetResponseSchema } from '../assets/response-schema.ts';
import type { Operation, OperationRequest } from '../http/operation.ts';
import { type Answer, errorAnswer } from '../http/response.ts';
import { answerAsset, type Library, writeAsset } from './assets.ts';

/** The interface gives the paths without a version (section 9, rule 1); services have them with one as well. */
const PREFIXES = ['', '/v3', '/v4'] as const;

/** Books: interface, section 4.5, where only names are given. What is sent and answered is an asset: 2.1 and 2.2. */
export function bookOperations(library: Library): Operation[] {
  const known =
    (operate: (asset: Asset, request: OperationRequest) => Answer) =>
    (request: OperationRequest): Answer => {
      const asset = library.assets.find(request.values.vbid ?? '');
      return asset === null ? errorAnswer(404, 'Book not found') : operate(asset, request);
    };
  const common = { section: '4.5', token: false, format: 'json', response: assetResponseSchema } as const;
  return PREFIXES.flatMap((prefix): Operation[] => [
    {
      ...common,
      method: 'POST',
      path: `${prefix}/vital_books`,
      summary: 'Create a book, with an identifier that is generated',
      request: assetCreation,
      operate: (request) => writeAsset(library, null, request),
    },
    {
      ...common,
      method: 'PUT',
      path: `${prefix}/vital_books/:vbid`,
      summary: 'Update a book',
      request: assetUpdate,
      operate: known(({ vbid }, request) => writeAsset(library, vbid, request)),
    },
    {
      ...common,
      method: 'GET',
      path: `${prefix}/vital_books/:vbid`,
      summary: 'Read a book',
      operate: known((asset) => answerAsset(library, asset)),
    },
  ]);
}
