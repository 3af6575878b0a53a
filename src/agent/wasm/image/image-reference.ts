/** Image names are `oci://registry/repository:tag@digest`, parsed as Docker and Kubernetes do. */

export interface ImageReference {
  /** `host` or `host:port`. */
  readonly registry: string;
  readonly repository: string;
  readonly reference: string;
  /** The digest is in hexadecimal, and empty for an image named by its tag. */
  readonly digest: string;
}

/** The registry of image names without a host. */
export const defaultRegistry = 'index.docker.io';

const registryPattern = /^(?:[a-z0-9-]+(?:\.[a-z0-9-]+)*|\[[0-9a-f:.]+\])(?::\d{1,5})?$/;
const repositoryPattern = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:\/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const maxNameLength = 1_024;

export function isImageUrl(url: string): boolean {
  return /^oci:\/\//i.test(url);
}

/** @throws Error if the URL does not name an image */
export function parseImageUrl(url: string): ImageReference {
  const name = url.replace(/^oci:\/\//i, '');
  if (name.length > maxNameLength) throw new Error(`image name must have at most ${maxNameLength} characters`);
  const [nameWithTag, digestText] = splitAt(name, name.indexOf('@'));
  const slash = nameWithTag.indexOf('/');
  const firstSegment = slash < 0 ? '' : nameWithTag.slice(0, slash);
  const hasHost = /[.:]/.test(firstSegment) || firstSegment === 'localhost';
  const path = hasHost ? nameWithTag.slice(slash + 1) : nameWithTag;
  const [repositoryName, tag] = splitAt(path, path.lastIndexOf(':'));
  const registry = hasHost && firstSegment !== 'docker.io' ? firstSegment.toLowerCase() : defaultRegistry;
  const isOfficialImage = registry === defaultRegistry && !repositoryName.includes('/');
  const repository = isOfficialImage ? `library/${repositoryName}` : repositoryName;
  if (!registryPattern.test(registry)) throw new Error(`invalid registry "${registry}" in the image name`);
  if (!repositoryPattern.test(repository)) throw new Error(`invalid repository "${repositoryName}" in the image name`);
  if (tag !== undefined && !tagPattern.test(tag)) throw new Error(`invalid tag "${tag}" in the image name`);
  if (digestText !== undefined && !/^sha256:[0-9a-f]{64}$/.test(digestText)) {
    throw new Error('digest of the image must be sha256: and 64 hexadecimal digits in lower case');
  }
  const digest = digestText?.slice('sha256:'.length) ?? '';
  return { registry, repository, reference: digestText ?? tag ?? 'latest', digest };
}

function splitAt(text: string, index: number): [string, string | undefined] {
  return index < 0 ? [text, undefined] : [text.slice(0, index), text.slice(index + 1)];
}
