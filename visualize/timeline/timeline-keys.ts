/** The lanes are one tab stop, and arrow keys move within them. */
import { jumpTo, place, recording } from '../model/place.ts';
import { xOf } from './timeline-view.ts';

export function onLaneKey(event: KeyboardEvent): void {
  const lanes = event.currentTarget as HTMLElement;
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const focusedItem = (event.target as Element).closest<SVGGElement>('[data-index]');
  if (focusedItem !== null && (event.key === 'Enter' || event.key === ' ')) jumpTo(Number(focusedItem.dataset.index));
  else if (event.key === 'Escape' && focusedItem !== null) lanes.focus();
  else if (event.key.startsWith('Arrow')) nextItem(lanes, focusedItem, event.key)?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function nextItem(lanes: HTMLElement, currentItem: SVGGElement | null, key: string): SVGGElement | undefined {
  const rows = [...lanes.querySelectorAll('.lane')].map(itemsOf).filter((rowItems) => rowItems.length > 0);
  // Moves from the lanes to the item nearest to the current place.
  if (currentItem === null) return nearestItem(rows.flat(), xOf(recording.value?.timeAt(place.value) ?? 0));
  const row = rows.findIndex((rowItems) => rowItems.includes(currentItem));
  if (key === 'ArrowUp' || key === 'ArrowDown') {
    return nearestItem(rows[row + (key === 'ArrowUp' ? -1 : 1)] ?? [], xOfItem(currentItem));
  }
  const currentItems = rows[row] ?? [];
  return currentItems[currentItems.indexOf(currentItem) + (key === 'ArrowLeft' ? -1 : 1)];
}

/** In display order: a mark follows the bar that begins with it. */
function itemsOf(lane: Element): SVGGElement[] {
  return [...lane.querySelectorAll<SVGGElement>('[data-index]')].sort((a, b) => xOfItem(a) - xOfItem(b));
}

function nearestItem(items: readonly SVGGElement[], x: number): SVGGElement | undefined {
  const distanceTo = (item: SVGGElement): number => Math.abs(xOfItem(item) - x);
  return items.toSorted((a, b) => distanceTo(a) - distanceTo(b))[0];
}

function xOfItem({ dataset }: SVGGElement): number {
  return Number(dataset.x);
}
