// Draws the windows and the seams of a run, its requests a minute, and the charts of the overview. Captions and tables on the
// page say the same in words and figures.

const { uPlot } = /** @type {any} */ (window);

/** Sizes of a cell with the gap after it, in CSS pixels. */
const PITCH = { least: 5, most: 30 };
/** So many cells need no slider. */
const FEW = 5;
const COLOURS = ['ink', 'paper', 'soft', 'line', 'accent', 'good', 'warn', 'bad', 'whole'];
const WINDOW_WORDS = new Map([
  ['.', 'not read'],
  ['w', 'read'],
  ['a', 'read, and a place in it read again by a repair'],
  ['x', 'read, with items that were rejected'],
  ['d', 'read, but its totals contradict its items'],
]);
const SEAM_WORDS = new Map([
  ['.', 'The seam after it is not known yet.'],
  ['j', 'The seam after it is closed.'],
  ['r', 'The seam after it was closed by a repair.'],
  ['o', 'The seam after it is open.'],
]);
const NUMBER = new Intl.NumberFormat('en-US');

/** The colours of the page, in its present theme. @param {HTMLElement} box @returns {Record<string, string>} */
function coloursIn(box) {
  const probe = document.createElement('span');
  box.append(probe);
  const found = COLOURS.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}

/** The function that draws the picture of each box again. @type {WeakMap<HTMLElement, () => void>} */
const pictures = new WeakMap();
/** @type {WeakMap<HTMLElement, any>} */
const charts = new WeakMap();
/** The figures of each chart as they are now, which its legend names. @type {WeakMap<HTMLElement, (number | null)[][]>} */
const latest = new WeakMap();

/** What is known of a cell. @param {DOMStringMap} data @param {number} at */
function describe({ cells = '', seams = '', places = '', perCell = '1', windows = '0' }, at) {
  const many = Number(perCell);
  const state = WINDOW_WORDS.get(cells[at] ?? '.') ?? '';
  const seam = SEAM_WORDS.get(seams[at] ?? ' ') ?? '';
  const [first, last] = [at * many + 1, Math.min((at + 1) * many, Number(windows))];
  const which =
    many === 1
      ? `Window ${NUMBER.format(first)} of ${NUMBER.format(Number(windows))}`
      : `Windows ${NUMBER.format(first)} to ${NUMBER.format(last)}, the worst of them`;
  if (places === '') return `${which}: ${state}. ${seam}`;
  let start = 0;
  for (let one = 0; one <= at; one++) start += Number.parseInt(places.slice(4 * one, 4 * one + 2), 36);
  const size = Number.parseInt(places.slice(4 * at + 2, 4 * at + 4), 36);
  const request = `page=${start / size + 1}, per_page=${size}`;
  const products = `products ${NUMBER.format(start + 1)} to ${NUMBER.format(start + size)} of the list`;
  return `${which}: ${products} (${request}), ${state}. ${seam}`;
}

/** The largest cells with which the picture is not higher than wide. @param {number} width @param {number} cells */
function fitCells(width, cells) {
  const most = Math.min(width, Math.max(160, Math.min(360, width * 0.9)));
  for (let pitch = PITCH.most; pitch > PITCH.least; pitch--) {
    const columns = Math.max(1, Math.floor(width / pitch));
    if (Math.ceil(cells / columns) * pitch * 1.2 <= most) return { pitch, columns };
  }
  return { pitch: PITCH.least, columns: Math.max(1, Math.floor(width / PITCH.least)) };
}

/** Makes the picture of a list. @param {HTMLElement} box in its figure @returns a function that draws what the figure says */
function createPicture(box) {
  const canvas = document.createElement('canvas');
  canvas.setAttribute('role', 'img');
  const label = document.createElement('label');
  label.textContent = 'Look at one window';
  const slider = document.createElement('input');
  slider.type = 'range';
  slider.min = '0';
  slider.value = '0';
  label.append(slider);
  const output = document.createElement('output');
  box.append(canvas, label, output);
  const data = () => box.parentElement?.dataset ?? {};
  const words = () => {
    const pointed = describe(data(), Number(slider.value));
    slider.setAttribute('aria-valuetext', pointed);
    return pointed;
  };
  const repaint = () => {
    const isPointed = document.activeElement === slider || canvas.matches(':hover');
    paint(box, canvas, data(), isPointed ? Number(slider.value) : -1);
  };
  const point = () => {
    output.textContent = words();
    repaint();
  };
  slider.addEventListener('input', point);
  canvas.addEventListener('pointermove', ({ offsetX, offsetY }) => {
    const { pitch, columns } = fitCells(box.clientWidth, Number(slider.max) + 1);
    const at = Math.floor(offsetY / (pitch * 1.2)) * columns + Math.floor(offsetX / pitch);
    if (at < 0 || at > Number(slider.max) || slider.value === String(at)) return;
    slider.value = String(at);
    point();
  });
  new ResizeObserver(repaint).observe(box);
  return () => {
    const { cells = '', label: name = '' } = data();
    canvas.setAttribute('aria-label', name);
    // The captions say enough of a few windows.
    label.hidden = cells.length < FEW;
    slider.max = String(Math.max(0, cells.length - 1));
    const pointed = words();
    if (output.textContent !== '') output.textContent = pointed;
    repaint();
  };
}

/**
 * Paints one cell and the seam after it.
 * @param {CanvasRenderingContext2D} context
 * @param {{ x: number, y: number, pitch: number, isLast: boolean, isFirst: boolean }} place
 * @param {{ cell: string, seam: string, before: string }} states
 * @param {Record<string, string>} colours
 */
function paintCell(context, { x, y, pitch, isLast, isFirst }, { cell, seam, before }, colours) {
  const size = Math.max(3, Math.round(pitch * 0.74));
  const gap = pitch - size;
  const middle = y + size / 2;
  // As even or odd as the cell, so that its edges are sharp.
  const thick = size - 2 * Math.max(1, Math.round(size * 0.25));
  const whole = colours.whole ?? '';
  const fill = { '.': colours.line, x: colours.warn, d: colours.bad }[cell] ?? whole;
  context.fillStyle = fill ?? '';
  context.beginPath();
  context.roundRect(x, y, size, size, Math.min(4, size * 0.25));
  context.fill();
  context.fillStyle = colours.paper ?? '';
  // Marks that do not need colour: a hole for a repair, a dot for rejected items, a bar for doubt.
  if (cell === 'a') context.fillRect(x + size * 0.34, y + size * 0.34, size * 0.32, size * 0.32);
  if (cell === 'd') context.fillRect(x + size * 0.2, middle - size * 0.1, size * 0.6, size * 0.2);
  if (cell === 'x') {
    context.beginPath();
    context.arc(x + size / 2, middle, size * 0.22, 0, 2 * Math.PI);
    context.fill();
  }
  // A closed seam fuses two windows; at the end of a row, half of it stands on each side.
  const closed = { j: whole, r: colours.ink }[seam];
  if (closed !== undefined) {
    context.fillStyle = closed;
    context.fillRect(x + size, middle - thick / 2, isLast ? Math.ceil(gap / 2) : gap, thick);
    if (seam === 'r') context.fillRect(x + size + gap * 0.1, y + size * 0.1, Math.max(1.5, gap * 0.8), size * 0.8);
  }
  if (isFirst && (before === 'j' || before === 'r')) {
    context.fillStyle = before === 'j' ? whole : (colours.ink ?? '');
    context.fillRect(x - Math.ceil(gap / 2), middle - thick / 2, Math.ceil(gap / 2), thick);
  }
  if (seam === 'o') {
    context.fillStyle = colours.bad ?? '';
    context.fillRect(x + size + gap * 0.15, y - size * 0.12, Math.max(1.5, gap * 0.7), size * 1.24);
  }
}

/** @param {HTMLElement} box @param {HTMLCanvasElement} canvas @param {DOMStringMap} data @param {number} pointed -1: none */
function paint(box, canvas, { cells = '', seams = '' }, pointed) {
  const width = box.clientWidth;
  const context = canvas.getContext('2d');
  if (width === 0 || cells === '' || context === null) return;
  const { pitch, columns } = fitCells(width, cells.length);
  const height = Math.ceil(cells.length / columns) * pitch * 1.2 + 2;
  const scale = devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  context.scale(scale, scale);
  const colours = coloursIn(box);
  for (let at = 0; at < cells.length; at++) {
    const column = at % columns;
    const x = column * pitch + Math.round(pitch * 0.13);
    const y = Math.round(Math.floor(at / columns) * pitch * 1.2 + pitch * 0.15);
    const place = { x, y, pitch, isFirst: column === 0, isLast: column === columns - 1 };
    const states = { cell: cells[at] ?? '.', seam: seams[at] ?? ' ', before: seams[at - 1] ?? ' ' };
    paintCell(context, place, states, colours);
    if (at !== pointed) continue;
    context.strokeStyle = colours.ink ?? '';
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, Math.round(pitch * 0.74) + 2, Math.round(pitch * 0.74) + 2);
  }
}

const DAY_MS = 86_400_000;
/** Steps of the axes of times and lengths: from a second to a month; milliseconds. */
const STEPS = [
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200].map(
    (one) => one * 1_000,
  ),
  ...[1, 2, 7, 14, 30].map((days) => days * DAY_MS),
];
/** How lines are drawn that are not of the accent's colour. @type {Map<string, { colour: string, dash?: number[] }>} */
const LINES = new Map([
  ['Created', { colour: 'good' }],
  ['Removed', { colour: 'bad' }],
  ['Restored', { colour: 'warn' }],
  ['Delta run', { colour: 'soft' }],
  ['Limit', { colour: 'bad', dash: [6, 4] }],
]);

/** A length in its largest unit. @param {number} ms */
function lengthText(ms) {
  /** @type {[number, string][]} */
  const units = [
    [DAY_MS, 'd'],
    [3_600_000, 'h'],
    [60_000, 'min'],
  ];
  const [size, unit] = units.find(([one]) => ms >= one) ?? [1_000, 's'];
  return `${NUMBER.format(Math.round((10 * ms) / size) / 10)} ${unit}`;
}

/**
 * @typedef {object} Figures
 * @property {string} form `counts`, `rates`, `lengths` (milliseconds), or a `stack` of bars
 * @property {number} spanMs what a time stands for
 * @property {string[]} names of the lines
 * @property {number[]} times milliseconds since 1970
 * @property {(number | null)[][]} lines
 */

/** Draws a chart, or gives a drawn one new figures. @param {HTMLElement} box @param {Figures} figures */
function drawFigures(box, { form, spanMs, names, times, lines }) {
  // Of a stack, each line is drawn on top of the sum of those after it.
  const sumFrom = (/** @type {number} */ at) =>
    times.map((_, row) => lines.slice(at).reduce((sum, line) => sum + (line[row] ?? 0), 0));
  const data = [times, ...(form === 'stack' ? lines.map((_, at) => sumFrom(at)) : lines)];
  const drawn = charts.get(box);
  if (drawn !== undefined) return drawn.setData(data);
  const height = form === 'rates' ? 200 : 150;
  const text = form === 'lengths' ? lengthText : (/** @type {number} */ some) => NUMBER.format(some);
  // Times on this page are in UTC.
  const timeText = (/** @type {number} */ at) =>
    new Date(at).toISOString().slice(...(spanMs < DAY_MS ? [11, 19] : [5, 10]));
  const series = names.map((label, at) => {
    const { colour, dash } = LINES.get(label) ?? { colour: label.endsWith(' waits for') ? 'warn' : 'accent' };
    const stroke = () => coloursIn(box)[colour];
    /** @type {(...given: [{ data: unknown }, unknown, unknown, number | null]) => string} */
    const value = (_chart, _value, _series, row) => {
      const some = row === null ? null : (latest.get(box)?.[at]?.[row] ?? null);
      return some === null ? '–' : text(some);
    };
    const bars = { width: 0, fill: stroke, paths: uPlot.paths.bars({ size: [0.7, 24] }), points: { show: false } };
    const curve = { fill: () => stroke()?.replace(/rgb\((.*)\)/, 'rgba($1, 0.1)'), points: { show: false } };
    const rest = form === 'stack' ? bars : form === 'rates' && dash === undefined ? curve : { points: { size: 5 } };
    return { label, value, stroke, dash, width: dash === undefined ? 2 : 1, ...rest };
  });
  // Bars need half of their width outside of the first and the last day.
  /** @type {(...given: [unknown, number, number]) => number[]} */
  const timeRange = (_chart, low, high) => [low - spanMs / 2, high + spanMs / 2];
  const least = form === 'rates' ? 10 : 1;
  /** @type {(...given: [unknown, number, number]) => number[]} */
  const range = (_chart, low, high) =>
    form === 'counts' ? [low * 0.98, high * 1.02 + 1] : [0, Math.max(least, high * 1.15)];
  const axis = {
    stroke: () => coloursIn(box).soft,
    grid: { stroke: () => coloursIn(box).line, width: 1 },
    ticks: { show: false },
  };
  const timeTexts = (/** @type {unknown} */ _, /** @type {number[]} */ some) => some.map(timeText);
  const texts = (/** @type {unknown} */ _, /** @type {number[]} */ some) => some.map(text);
  const timeValue = (/** @type {unknown} */ _, /** @type {number | null} */ at) => (at === null ? '–' : timeText(at));
  const made = new uPlot(
    {
      width: box.clientWidth,
      height,
      // Half of the last time stands to the right of its line.
      padding: [8, 32, 0, 0],
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: timeRange }, y: { range } },
      axes: [
        { ...axis, values: timeTexts, size: 28, space: 80, incrs: STEPS.filter((step) => step >= spanMs) },
        { ...axis, values: texts, size: 64, space: 24, ...(form === 'lengths' && { incrs: STEPS }) },
      ],
      series: [{ label: spanMs < DAY_MS ? 'Time (UTC)' : 'Day (UTC)', value: timeValue }, ...series],
    },
    data,
    box,
  );
  charts.set(box, made);
  new ResizeObserver(() => made.setSize({ width: box.clientWidth, height })).observe(box);
}

/** @param {HTMLElement} figure @returns {Figures} */
function paceOf(figure) {
  const { from = '0', step = '1', requests = '', limit } = figure.dataset;
  const points = requests.split(',').map(Number);
  const times = points.map((_, at) => 1_000 * (Number(from) + at * Number(step)));
  const hasLimit = limit !== undefined;
  const names = ['Requests in the minute before', ...(hasLimit ? ['Limit'] : [])];
  const lines = [points, ...(hasLimit ? [points.map(() => Number(limit))] : [])];
  return { form: 'rates', spanMs: 0, names, times, lines };
}

/** Reads the table below the charts, and closes it. @param {HTMLElement} figure @returns {Figures} */
function historyOf(figure) {
  const details = figure.closest('section')?.querySelector('details.figures');
  const heads = [...(details?.querySelectorAll('thead th') ?? [])].map(({ textContent }) => textContent);
  const rows = [...(details?.querySelectorAll('tbody tr') ?? [])].reverse();
  const column = (/** @type {number} */ at) =>
    rows
      .map((row) => row.children[at]?.querySelector('data')?.value)
      .map((one) => (one === undefined ? null : Number(one)));
  const { form = '', lines = '' } = figure.dataset;
  const names = lines.split('|');
  const times = column(0).map(Number);
  details?.removeAttribute('open');
  return { form, spanMs: DAY_MS, names, times, lines: names.map((name) => column(heads.indexOf(name))) };
}

/** @param {ParentNode} element @param {string} selector @param {(figure: HTMLElement) => Figures} read */
function drawCharts(element, selector, read) {
  for (const figure of element.querySelectorAll(selector)) {
    const box = /** @type {HTMLElement | null} */ (figure.querySelector('[data-drawn]'));
    if (box === null || box.clientWidth === 0) continue;
    const figures = read(/** @type {HTMLElement} */ (figure));
    latest.set(box, figures.lines);
    drawFigures(box, figures);
  }
}

/** @param {ParentNode} element */
function drawAll(element) {
  /** @type {NodeListOf<HTMLElement>} */
  const boxes = element.querySelectorAll('figure.windows > [data-drawn]');
  for (const box of boxes) {
    const draw = pictures.get(box) ?? createPicture(box);
    pictures.set(box, draw);
    draw();
  }
  drawCharts(element, 'figure.pace', paceOf);
  drawCharts(element, 'figure.chart', historyOf);
}

document.addEventListener('sectionchange', (event) => drawAll(/** @type {CustomEvent<Element>} */ (event).detail));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const box of document.querySelectorAll('figure:not(.windows) [data-drawn]')) {
    charts.get(/** @type {HTMLElement} */ (box))?.redraw(false);
  }
  drawAll(document);
});
