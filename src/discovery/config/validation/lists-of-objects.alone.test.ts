/** Problems of objects in a List are located at their fields. The cost per object does not grow with the List. */
import { expect, it } from 'vitest';
import { type CountedWork, countWork, growthOfWork } from '../../../../test/harness/counted-work.ts';
import { stringify } from '../../../model/yaml/yaml-writing.ts';
import { type Validation, validateFiles } from './validate-files.ts';

/** Numbers of objects in the List. */
const [smallCount, largeCount] = [100, 400];
const maxExponent = 1.2;

function listOf(count: number): object {
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'a', namespace: 'shop' },
    spec: { ports: [{ port: 80 }] },
  };
  const routes = Array.from({ length: count }, (_, index) => ({
    ...{
      apiVersion: 'networking.istio.io/v1',
      kind: 'VirtualService',
      metadata: { name: `v${index}`, namespace: 'shop' },
    },
    spec: { hosts: [`v${index}.test`], http: [{ route: [{ destination: { host: `absent${index}` } }] }] },
  }));
  return { apiVersion: 'v1', kind: 'List', items: [service, ...routes] };
}

/** The text at the location of each problem, up to the end of the line. */
function placesIn(text: string, { problems }: Validation): readonly string[] {
  const lines = text.split('\n');
  return problems.map(({ line, column = 1 }) => lines[line - 1]!.slice(column - 1));
}

const forms: readonly (readonly [string, (value: unknown) => string])[] = [
  ['YAML', (value) => stringify(value)],
  ['indented JSON', (value) => JSON.stringify(value, null, 4)],
  ['JSON in one line', (value) => JSON.stringify(value)],
];

it.each(forms)('validate locates each problem in a List at its field: %s', async (_, formatList) => {
  const text = formatList(listOf(3));
  const result = await validateFiles([], [{ file: 'a.yaml', text }]);
  expect(result.problems.map(({ code, object }) => `${code} ${object}`)).toEqual(
    [0, 1, 2].map((index) => `HOST_NOT_FOUND VirtualService shop/v${index}`),
  );
  expect(placesIn(text, result)).toEqual(
    [0, 1, 2].map((index) => expect.stringMatching(new RegExp(`^"?host"?: ?"?absent${index}\\b`))),
  );
});

it.each(forms)('validate takes the same time per problem, however long the List is: %s', async (_, formatList) => {
  const workOf = async (count: number): Promise<CountedWork> => {
    const files = [{ file: 'a.yaml', text: formatList(listOf(count)) }];
    // The first call excludes computations that happen once per process.
    await validateFiles([], files);
    const counts = await countWork(() => validateFiles([], files));
    // The parser inserts events near the end of its list, but the counter counts the whole list.
    return new Map([...counts].filter(([operation]) => operation !== 'Array splice'));
  };
  const work = new Map([
    [smallCount, await workOf(smallCount)],
    [largeCount, await workOf(largeCount)],
  ]);
  const growth = growthOfWork((size) => work.get(size)!, smallCount, largeCount, maxExponent);
  expect(growth.tooFast).toEqual([]);
  expect(growth.exponent).toBeLessThan(maxExponent);
});
