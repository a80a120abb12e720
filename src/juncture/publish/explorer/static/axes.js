// What stands along a chart: all values of an attribute, or the groups that the server made of them.

export const SORTS = [["given", "In order"], ["label", "A–Z"], ["count", "Largest"]];

// `codes` has, for each value that is shown, the codes that it stands for; null where they are too many.
export function makeAxis(attribute, groups) {
  if (!groups) return { ...attribute, codes: attribute.values.map((_, code) => [code]), grouped: false };
  const codes = groups.values.map((value) => value.codes ?? null);
  return { ...attribute, kind: groups.kind, values: groups.values, codes, grouped: true };
}

// The places of values along an axis, sorted; missing, outside and others stay at the end.
function places(axis, totals, sort) {
  const order = axis.values.map((_, place) => place);
  const last = (place) => Number(Boolean(axis.values[place].special)) + 2 * Number(Boolean(axis.values[place].rest));
  const text = new Intl.Collator("en", { numeric: true });
  const compare = {
    label: (a, b) => text.compare(axis.values[a].label, axis.values[b].label),
    count: (a, b) => totals[b] - totals[a],
  }[sort];
  return order.sort((a, b) => last(a) - last(b) || compare(a, b) || a - b);
}

// The axes with the first two sorted, and how to sort what has a number for each cell; the third is
// sliced, and stays.
export function arrange(axes, shape, cells, sort) {
  if (sort === "given" || !axes.length) return { axes, move: (all) => all };
  const totals = shape.map((size) => new Array(size).fill(0));
  const steps = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
  cells.forEach((value, at) => steps.forEach((step, axis) => { totals[axis][Math.floor(at / step) % shape[axis]] += value; }));
  const orders = axes.map((axis, index) => (index < 2 ? places(axis, totals[index], sort) : axis.values.map((_, place) => place)));
  const sorted = axes.map((axis, index) => {
    const moved = orders[index].some((place, at) => place !== at);
    const [values, codes] = [axis.values, axis.codes].map((all) => orders[index].map((place) => all[place]));
    return { ...axis, values, codes, kind: moved ? "texts" : axis.kind };
  });
  const source = (at) => steps.reduce((from, step, axis) => from + step * orders[axis][Math.floor(at / step) % shape[axis]], 0);
  return { axes: sorted, move: (all) => all.map((_, at) => all[source(at)]) };
}

// What a value is a part of, for each way to show it: `whole(measure)(i, j)`, -1 for all rows or columns.
export function wholes(cells, n) {
  const down = new Array(n).fill(0), across = new Array(cells.length / n).fill(0);
  let total = 0;
  cells.forEach((value, at) => { down[at % n] += value; across[Math.floor(at / n)] += value; total += value; });
  const whole = (measure) => ({
    count: () => 1, all: () => total, row: (i) => (i < 0 ? total : across[i]), column: (_, j) => (j < 0 ? total : down[j]),
  })[measure];
  return { down, across, total, whole };
}
