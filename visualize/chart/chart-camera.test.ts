import { expect, test } from 'vitest';
import {
  boundingBoxOf,
  initialScale,
  maxScale,
  minScale,
  scaleToFit,
  scrollToKeep,
  scrollToShow,
  zoomScale,
} from './chart-camera.ts';

test('the scale to fit shows the complete chart in both dimensions', () => {
  expect(scaleToFit({ width: 1000, height: 4000 }, { width: 500, height: 1000 })).toBe(0.25);
});

test('a chart of any size is first shown at a readable scale', () => {
  expect(initialScale({ width: 10_000, height: 100 }, { width: 500, height: 500 })).toBe(0.8);
  expect(initialScale({ width: 100, height: 100 }, { width: 500, height: 500 })).toBe(1);
});

test('zooming a chart stops at the minimum and maximum scale', () => {
  expect([zoomScale(2.9, 2), zoomScale(0.11, 0.1)]).toEqual([maxScale, minScale]);
});

test('zooming a chart keeps the point below the pointer in place', () => {
  const scroll = scrollToKeep(300, 50, 1, 2);
  expect((scroll + 50) / 2).toBe(300 + 50);
});

test('showing a part of a chart that is already visible causes no scrolling', () => {
  expect(scrollToShow({ from: 100, length: 50 }, 1, 0, 400)).toBeUndefined();
});

test('showing a hidden part of a chart scrolls it to the middle', () => {
  expect(scrollToShow({ from: 1000, length: 100 }, 0.5, 0, 400)).toBe(500 + 25 - 200);
  expect(scrollToShow({ from: 10, length: 20 }, 1, 500, 400)).toBe(0);
});

test('a part of a chart that is larger than the viewport is shown from its beginning', () => {
  expect(scrollToShow({ from: 500, length: 900 }, 1, 0, 400)).toBe(476);
});

test('the bounding box encloses all boxes, and an empty list has none', () => {
  expect(boundingBoxOf([])).toBeUndefined();
  expect(
    boundingBoxOf([
      { x: 1, y: 5, width: 2, height: 2 },
      { x: 2, y: 1, width: 9, height: 3 },
    ]),
  ).toEqual({
    x: 1,
    y: 1,
    width: 10,
    height: 6,
  });
});
