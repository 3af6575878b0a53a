import { BlockList, isIP } from 'node:net';
import { ChartpilotError } from './errors.ts';

/**
 * The networks of a setting.
 *
 * @param setting the name of the environment variable or flag, for the error
 * @param networks addresses, or networks such as `10.0.0.0/8`
 * @throws ChartpilotError FLAG_INVALID for a text that is no network
 */
export function networkList(setting: string, networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    const family = isIP(address);
    const length = bits === undefined ? (family === 6 ? 128 : 32) : Number(bits);
    const isNetwork = family !== 0 && /^\d+$/.test(bits ?? '0') && length <= (family === 6 ? 128 : 32);
    if (!isNetwork) {
      throw new ChartpilotError('FLAG_INVALID', `${setting}: ${JSON.stringify(network)} is no network`, {
        hint: 'write it as 10.0.0.0/8, several with commas between them',
      });
    }
    list.addSubnet(address, length, family === 6 ? 'ipv6' : 'ipv4');
  }
  return list;
}
