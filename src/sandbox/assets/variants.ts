import type { ChannelId, Price, Variants } from './fields.ts';

/** A product of the asset: interface, section 2.2. */
export interface Variant {
  readonly sku: string;
  readonly type: 'single' | 'rental';
  /** Days, or null: perpetual. */
  readonly days: number | null;
  readonly prices: readonly Price[];
}

/** The one channel that the interface supports. */
export const CHANNEL = 'inclusive_access';

/** The single, then a rental for each duration among the prices, shortest first: `<vbid>R180` for 180 days. */
export function variantsOf(vbid: string, prices: readonly Price[]): Variant[] {
  const days = [...new Set(prices.flatMap(({ duration }) => duration ?? []))].sort((a, b) => a - b);
  const single = prices.filter(({ duration }) => duration === undefined);
  const rentals = days.map((duration): Variant => {
    const own = prices.filter((price) => price.duration === duration);
    return { sku: `${vbid}R${duration}`, type: 'rental', days: duration, prices: own };
  });
  return [{ sku: vbid, type: 'single', days: null, prices: single }, ...rentals];
}

/** Channel identifiers by SKU, with those that a request sets. */
export function withChannelIds(
  held: ReadonlyMap<string, string>,
  set: readonly ChannelId[],
): ReadonlyMap<string, string> {
  return new Map([...held, ...set.map(({ sku, channel_id_inclusive_access: id }) => [sku, id] as const)]);
}

/**
 * What is wrong with channel identifiers that are set: a message for each SKU that the asset has not.
 * @param isNamed whether the caller knows the vbid; else it is only now generated
 */
export function strangeSkus(vbid: string, isNamed: boolean, prices: readonly Price[], set: Variants): string[] {
  const own = new Set(variantsOf(vbid, prices).map(({ sku }) => sku));
  const needed = isNamed
    ? `${vbid} is needed, or with R and the days of one of its rentals`
    : 'can be set once the asset has its identifier, with which its SKUs begin';
  return set.flatMap(({ channel_ids = [] }, at) =>
    channel_ids.flatMap(({ sku }, place) =>
      own.has(sku) ? [] : [`variants/${at}/channel_ids/${place}/sku: ${needed}`],
    ),
  );
}
