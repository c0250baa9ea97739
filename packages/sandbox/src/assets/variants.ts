import type { Price, Variants } from './asset-fields.ts';

/** The only channel that the interface supports. */
export const CHANNEL = 'inclusive_access';

/**
 * The products of an asset (interface, section 2.2): the single, then a rental for each duration among the prices,
 * shortest first: `<vbid>R180` for 180 days.
 * @rule 2.1-35, 2.1.3-2, 2.2-20, 2.2-22
 */
export function variantsOf(vbid: string, prices: readonly Price[] = []) {
  const durations = [...new Set(prices.flatMap(({ duration }) => duration ?? []))].sort((a, b) => a - b);
  const single = prices.filter(({ duration }) => duration === undefined);
  const rentals = durations.map((days) => {
    const own = prices.filter(({ duration }) => duration === days);
    return { sku: `${vbid}R${days}`, type: 'rental', duration: String(days), prices: own };
  });
  return [{ sku: vbid, type: 'single', duration: 'perpetual', prices: single }, ...rentals];
}

/** The channel identifiers of a SKU, as they are answered. */
export function channelIdsOf(channelIds: ReadonlyMap<string, string>, sku: string) {
  const identifier = channelIds.get(sku);
  return identifier === undefined ? [] : [{ channel: CHANNEL, identifier }];
}

/** Returns a message for each SKU in a request that the asset does not have. */
export function unknownSkus(vbid: string, prices: readonly Price[], set: Variants): string[] {
  const own = new Set(variantsOf(vbid, prices).map(({ sku }) => sku));
  return set.flatMap(({ channel_ids = [] }, at) =>
    channel_ids.flatMap(({ sku }, place) =>
      own.has(sku)
        ? []
        : [`variants/${at}/channel_ids/${place}/sku: must be the vbid, or vbid, R and the days of one of the rentals`],
    ),
  );
}
