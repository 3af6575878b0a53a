import { describe, expect, test } from 'vitest';
import { cutPath } from './cut-path.ts';

const down = [
  { x: 10, y: 0 },
  { x: 10, y: 100 },
];

describe('the path of an arrow', () => {
  test('is complete if it crosses no text', () => {
    const bent = [...down, { x: 50, y: 100 }];
    expect(cutPath(bent, [{ x: 20, y: 10, width: 10, height: 10 }])).toEqual([bent]);
  });

  test('is interrupted where it crosses a text', () => {
    expect(cutPath(down, [{ x: 0, y: 40, width: 20, height: 20 }])).toEqual([
      [
        { x: 10, y: 0 },
        { x: 10, y: 40 },
      ],
      [
        { x: 10, y: 60 },
        { x: 10, y: 100 },
      ],
    ]);
  });

  test('is interrupted once by overlapping texts', () => {
    const boxes = [
      { x: 0, y: 30, width: 20, height: 20 },
      { x: 5, y: 45, width: 20, height: 20 },
    ];
    expect(cutPath(down, boxes).map((part) => part.map(({ y }) => y))).toEqual([
      [0, 30],
      [65, 100],
    ]);
  });

  test('is also interrupted upwards and around a corner', () => {
    const up = [
      { x: 10, y: 100 },
      { x: 10, y: 0 },
      { x: 60, y: 0 },
    ];
    expect(cutPath(up, [{ x: 0, y: -5, width: 30, height: 25 }])).toEqual([
      [
        { x: 10, y: 100 },
        { x: 10, y: 20 },
      ],
      [
        { x: 30, y: 0 },
        { x: 60, y: 0 },
      ],
    ]);
  });

  test('is not interrupted along the edge of a text', () => {
    expect(cutPath(down, [{ x: 10, y: 40, width: 20, height: 20 }])).toEqual([down]);
  });
});
