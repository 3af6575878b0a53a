/** What would be wrong with a picture, seen from its coordinates alone. */
import type { Statechart } from '../../../runtime/statechart.ts';
import type { ArrowLabel, Box, ChartLayout, Point, StateBox } from '../chart-layout.ts';

/** Coordinates are rounded to a tenth. */
const tolerance = 0.3;

export function faultsOf(chart: Statechart, layout: ChartLayout): string[] {
  return [...stateFaults(chart, layout), ...arrowFaults(chart, layout), ...labelFaults(chart, layout)];
}

function stateFaults(chart: Statechart, { states, width, height }: ChartLayout): string[] {
  return states.flatMap((box, number) => {
    const { parent } = chart.states[number]!;
    const name = nameOf(chart, number);
    const around = parent === undefined ? { x: 0, y: 0, width, height } : inner(states[parent]!);
    const siblings = states.filter((_, other) => other > number && chart.states[other]!.parent === parent);
    return [
      ...(isInside(box, around) ? [] : [`${name} is not inside its parent, below what is written there`]),
      ...(box.width >= box.header.width && box.height >= box.header.height
        ? []
        : [`${name} has no room for its words`]),
      ...siblings
        .filter((other) => overlap(box, other))
        .map((other) => `${name} overlaps ${nameOf(chart, states.indexOf(other))}`),
    ];
  });
}

function arrowFaults(chart: Statechart, { arrows, states, markers }: ChartLayout): string[] {
  const ways = [
    ...arrows.map(({ source, target, points }) => ({ from: states[source]!, to: states[target]!, points, target })),
    ...markers.map((marker) => {
      const target = chart.states[marker.parent]!.initial!;
      return { from: marker, to: states[target]!, points: marker.points, target };
    }),
  ];
  return ways.flatMap(({ from, to, points, target }) => {
    const name = `an arrow to ${nameOf(chart, target)}`;
    const bends = points.slice(1).some((point, index) => point.x !== points[index]!.x && point.y !== points[index]!.y);
    return [
      ...(isOnBorder(points[0]!, from) ? [] : [`${name} does not begin at its source`]),
      ...(isOnBorder(points.at(-1)!, to) ? [] : [`${name} does not end at its target`]),
      ...(bends ? [`${name} is not made of horizontal and vertical lines`] : []),
    ];
  });
}

function labelFaults(chart: Statechart, layout: ChartLayout): string[] {
  const labels = layout.arrows.flatMap((arrow) => arrow.labels);
  const written = layout.states.map((box, number) =>
    chart.states.some(({ parent }) => parent === number) ? { ...box, ...size(box) } : box,
  );
  return labels.flatMap((label, index) => {
    const name = `label ${label.transition} (${textOf(label)})`;
    const over = written.findIndex((box) => overlap(label, box));
    const others = labels.slice(index + 1).filter((other) => overlap(label, other));
    return [
      ...(isInside(label, { x: 0, y: 0, ...layout }) ? [] : [`${name} is cut off`]),
      ...(over >= 0 ? [`${name} covers what is written in ${nameOf(chart, over)}`] : []),
      ...others.map((other) => `${name} covers label ${other.transition}`),
    ];
  });
}

const size = ({ header: { width, height } }: StateBox): { width: number; height: number } => ({ width, height });

function inner({ x, y, width, height, header }: StateBox): Box {
  return { x, y: y + header.height, width, height: height - header.height };
}

function overlap(a: Box, b: Box): boolean {
  const across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  return across > tolerance && down > tolerance;
}

function isInside(box: Box, around: Box): boolean {
  return (
    box.x >= around.x - tolerance &&
    box.y >= around.y - tolerance &&
    box.x + box.width <= around.x + around.width + tolerance &&
    box.y + box.height <= around.y + around.height + tolerance
  );
}

function isOnBorder({ x, y }: Point, box: Box): boolean {
  const across = Math.min(Math.abs(x - box.x), Math.abs(x - box.x - box.width));
  const down = Math.min(Math.abs(y - box.y), Math.abs(y - box.y - box.height));
  return isInside({ x, y, width: 0, height: 0 }, box) && Math.min(across, down) <= tolerance;
}

function nameOf(chart: Statechart, number: number): string {
  return chart.states[number]!.path || chart.id;
}

function textOf({ lines }: ArrowLabel): string {
  return lines.flatMap((line) => line.map(({ text }) => text)).join(' ');
}
