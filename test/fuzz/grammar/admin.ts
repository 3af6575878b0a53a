/** Random responses of Envoy's admin interface, or of another program on its port. */
import type { Draw } from '../../random-config/draw.ts';
import { oddText, oddValue } from './breaking-words.ts';
import { randomBytes } from './bytes.ts';

export function adminResponseBytes(draw: Draw): Buffer {
  return draw.one(
    () => randomBytes(draw, draw.int(0, 300)),
    () =>
      Buffer.from(
        `HTTP/1.1 ${draw.pick(['200', '503', '999', '-1', 'x'])} ${oddText(draw)}\r\ncontent-length: ${draw.pick(['0', '5', '-1', '99999999999'])}\r\n\r\n${oddText(draw)}`,
      ),
    () =>
      Buffer.from(
        `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${draw.pick(['ffffffff\r\n', '5\r\nLIVE\n\r\n0\r\n\r\n', 'zz\r\n', '-1\r\n'])}${oddText(draw)}`,
      ),
    () => Buffer.from(`HTTP/1.1 200 OK\r\n\r\n${JSON.stringify(oddValue(draw))}`),
    () =>
      Buffer.from(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"command_line_options": ${draw.chance(0.5) ? JSON.stringify({ restart_epoch: oddValue(draw) }) : JSON.stringify(oddValue(draw))}}`,
      ),
  );
}
