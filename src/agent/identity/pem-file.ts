export interface PemFileBlock {
  readonly number: number;
  readonly label: string;
  /** The last line is missing if the block is truncated. */
  readonly text: string;
  readonly isWhole: boolean;
}

const beginPattern = /-----BEGIN ([A-Z0-9 ]{1,64})-----/g;

/** Ignores text between blocks, as Envoy does. */
export function pemBlocks(content: Buffer): PemFileBlock[] {
  const text = content.toString('latin1');
  const beginMatches = [...text.matchAll(beginPattern)];
  return beginMatches.map(({ index, 1: label = '' }, i) => {
    const blockLimit = beginMatches[i + 1]?.index ?? text.length;
    const endMarker = `-----END ${label}-----`;
    const endIndex = text.indexOf(endMarker, index);
    const isComplete = endIndex !== -1 && endIndex < blockLimit;
    return {
      number: i + 1,
      label,
      text: text.slice(index, isComplete ? endIndex + endMarker.length : blockLimit),
      isWhole: isComplete,
    };
  });
}

export const isCertificate = ({ label }: PemFileBlock): boolean => /^(X509 |TRUSTED )?CERTIFICATE$/.test(label);

export const isPrivateKey = ({ label }: PemFileBlock): boolean => /(^| )PRIVATE KEY$/.test(label);

/** Passphrases are not supported. */
export const isEncrypted = ({ label, text }: PemFileBlock): boolean =>
  label === 'ENCRYPTED PRIVATE KEY' || /^Proc-Type: *4, *ENCRYPTED/m.test(text);
