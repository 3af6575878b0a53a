import { expect, test } from 'vitest';
import { formatAddress, parseAddress } from './address.ts';

test('an address is parsed to the values that it was formatted from', () => {
  const address = {
    source: 1,
    record: 123,
    actor: 'epoch-1/process & more',
    range: [10, 200] as const,
    marks: [3, 17],
  };
  expect(parseAddress(formatAddress(address))).toEqual(address);
  expect(parseAddress(formatAddress({}))).toEqual({});
});

test('an address is readable', () => {
  expect(formatAddress({ source: 0, record: 123, actor: 'epoch-1/process', range: [10, 200] })).toBe(
    '#source=0&record=123&actor=epoch-1/process&range=10-200',
  );
});

test('invalid fields of an address are ignored', () => {
  expect(parseAddress('#source=-1&record=12.5&actor=&range=20-10&marks=a,,-1&other=1')).toEqual({});
  expect(parseAddress('#record=999999999999999999999&source=0')).toEqual({ source: 0 });
});
