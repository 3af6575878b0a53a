import { BlockList, isIP } from 'node:net';
import { optionError } from '../option-errors.ts';

/** @throws ChartpilotError FLAG_INVALID for a text that is no network */
export function networkList(setting: string, networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIP(address);
    const length = bits === undefined ? (family === 6 ? 128 : 32) : Number(bits);
    const isNetwork = family !== 0 && /^\d+$/.test(bits ?? '0') && length <= (family === 6 ? 128 : 32);
    if (!isNetwork) {
      const expected = 'a list of IP addresses or networks such as 10.0.0.0/8,fd00::/8';
      const actual = JSON.stringify(network);
      throw optionError(setting, {
        code: 'FIELD_FORMAT_INVALID',
        message: `must be ${expected}, got ${actual}`,
        expected,
        got: actual,
      });
    }
    list.addSubnet(address, length, family === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
