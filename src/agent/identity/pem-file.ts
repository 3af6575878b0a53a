export interface PemFileBlock {
  readonly number: number;
  readonly label: string;
  /** The last line is missing if the block is truncated. */
  readonly text: string;
  readonly isWhole: boolean;
}

const beginning = /-----BEGIN ([A-Z0-9 ]{1,64})-----/g;

/** Ignores text between blocks, as Envoy does. */
export function pemBlocks(content: Buffer): PemFileBlock[] {
  const text = content.toString('latin1');
  const starts = [...text.matchAll(beginning)];
  return starts.map(({ index, 1: label = '' }, i) => {
    const blockLimit = starts[i + 1]?.index ?? text.length;
    const end = `-----END ${label}-----`;
    const endAt = text.indexOf(end, index);
    const isComplete = endAt !== -1 && endAt < blockLimit;
    return {
      number: i + 1,
      label,
      text: text.slice(index, isComplete ? endAt + end.length : blockLimit),
      isWhole: isComplete,
    };
  });
}

export const isCertificate = ({ label }: PemFileBlock): boolean => /^(X509 |TRUSTED )?CERTIFICATE$/.test(label);

export const isPrivateKey = ({ label }: PemFileBlock): boolean => /(^| )PRIVATE KEY$/.test(label);

/** Passphrases are not supported. */
export const isEncrypted = ({ label, text }: PemFileBlock): boolean =>
  label === 'ENCRYPTED PRIVATE KEY' || /^Proc-Type: *4, *ENCRYPTED/m.test(text);
