/** Tests that the cost per port of a service does not grow with the number of ports. Counts calls instead of measuring time. */
import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, growthOfWork } from '../../../test/harness/counted-work.ts';
import { endpointType } from '../index.ts';

const [smallCount, largeCount] = [20, 80];
const maxExponent = 1.2;

it('finding the endpoints of one port does not visit those of other ports', () => {
  const work = (size: number) => {
    const ports = Array.from({ length: size }, (_, index) => ({
      ...{ name: `p${index}`, number: 1_000 + index, protocol: 'TCP' },
    }));
    const endpoints = Array.from({ length: 100 }, (_, index) => ({ address: `10.1.0.${index}` }));
    const spec = { hosts: ['a.test'], location: 'MESH_EXTERNAL', resolution: 'STATIC', ports, endpoints };
    const world = new GivenWorld([givenObject('ServiceEntry', 'a', 'wide', spec)]);
    const node = world.connect('10.9.0.1');
    const names = ports.map(({ number }) => `outbound|${number}||a.test`);
    return countedWork(() => expect(node.get(endpointType, names)!.resources.size).toBe(size));
  };
  // The exponent is above 1, because finding a port by number is linear.
  expect(growthOfWork(work, smallCount, largeCount).exponent).toBeLessThan(maxExponent);
});
