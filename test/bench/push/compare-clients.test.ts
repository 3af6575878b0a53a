import { expect, test } from 'vitest';
import { type ClientView, disagreements } from './compare-clients.ts';

const view: ClientView = {
  initialMs: 4_000,
  initialBytes: 1e8,
  endpointMs: 100,
  routeMs: 200,
  endpointBytes: 1e6,
  routeBytes: 1e7,
};

test('two clients agree when their figures differ by less than the tolerance in either direction', () => {
  expect(disagreements('x', view, view)).toEqual([]);
  expect(disagreements('x', { ...view, initialMs: 5_300, endpointMs: 41, initialBytes: 0.995e8 }, view)).toEqual([]);
});

test('each figure beyond the tolerance is reported by name', () => {
  expect(disagreements('delta', { ...view, initialBytes: 1.02e8, routeMs: 300 }, view)).toEqual([
    'delta: initialBytes is 102000000 with our client, 100000000 with the other',
    'delta: routeMs is 300 with our client, 200 with the other',
  ]);
});
