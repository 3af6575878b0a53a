/**
 * Reads the whole of an answer that must not be longer than is bearable.
 * @throws Error when it is longer; what comes after that is not read
 */
export async function boundedText(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mostBytes: number,
): Promise<string> {
  return (await boundedBytes(body, mostBytes)).toString('utf8');
}

/** As {@link boundedText}. */
export async function boundedBytes(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mostBytes: number,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new Error(`response exceeds ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
