/** Draws a line chart with logarithmic axes as SVG. */

interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

interface Chart {
  readonly title: string;
  /** Powers of ten. */
  readonly x: readonly [from: number, to: number];
  readonly y: readonly [from: number, to: number];
  readonly unit: string;
  readonly series: readonly Series[];
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [720, 400, 70, 190, 40, 40];
const COLOURS = ['#1f5fa8', '#c2571a', '#3c8540', '#7a4fa3'];

function label(value: number): string {
  if (value >= 1e6) return `${value / 1e6} M`;
  return value >= 1e3 ? `${value / 1e3} k` : String(value);
}

/** Powers of ten within a range. */
function ticks([from, to]: readonly [number, number]): number[] {
  const count = Math.round(Math.log10(to / from));
  return Array.from({ length: count + 1 }, (_, at) => from * 10 ** at);
}

/** Where a value is, from 0 to 1. */
function share(value: number, [from, to]: readonly [number, number]): number {
  return Math.log(value / from) / Math.log(to / from);
}

export function chart({ title, x, y, unit, series }: Chart): string {
  const right = WIDTH - RIGHT;
  const bottom = HEIGHT - BOTTOM;
  const atX = (value: number): string => (LEFT + share(value, x) * (right - LEFT)).toFixed(1);
  const atY = (value: number): string => (bottom - share(value, y) * (bottom - TOP)).toFixed(1);
  const grid = [
    ...ticks(x).map(
      (value) =>
        `<path class="grid" d="M${atX(value)} ${TOP}V${bottom}"/><text x="${atX(value)}" y="${bottom + 20}" text-anchor="middle">${label(value)}</text>`,
    ),
    ...ticks(y).map(
      (value) =>
        `<path class="grid" d="M${LEFT} ${atY(value)}H${right}"/><text x="${LEFT - 8}" y="${Number(atY(value)) + 4}" text-anchor="end">${value.toLocaleString('en')} ${unit}</text>`,
    ),
  ];
  const lines = series.map(({ name, points }, at) => {
    const colour = COLOURS[at % COLOURS.length] ?? '';
    const path = points.map(([px, py], index) => `${index === 0 ? 'M' : 'L'}${atX(px)} ${atY(py)}`).join('');
    const dots = points.map(([px, py]) => `<circle cx="${atX(px)}" cy="${atY(py)}" r="3" fill="${colour}"/>`).join('');
    const text = `<text x="${right + 14}" y="${TOP + 16 + 22 * at}" fill="${colour}">${name}</text>`;
    return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="2"/>${dots}${text}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
<style>text{font:13px sans-serif}.grid{stroke:#ddd}svg{background:#fff}</style>
<text x="${LEFT}" y="22" font-weight="bold">${title}</text>
${[...grid, ...lines].join('\n')}
</svg>
`;
}
