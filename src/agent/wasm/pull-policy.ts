import type { RemoteCode } from './extension-config.ts';
import { isImageUrl, parseImageUrl } from './image/image-reference.ts';

/**
 * As in Kubernetes, the default is `Always` for images with the tag `latest` or no tag. With a checksum, or a digest in the URL, no fetch is needed.
 *
 * @returns empty if a cached module is current
 */
export function fetchedVersionOf({
  extension,
  url,
  sha256,
  pullPolicy,
  resourceVersion,
}: Pick<RemoteCode, 'extension' | 'url' | 'sha256' | 'pullPolicy' | 'resourceVersion'>): string {
  if (sha256 !== '' || (pullPolicy ?? defaultPolicy(url)) === 'IfNotPresent') return '';
  return `${extension} ${resourceVersion}`;
}

function defaultPolicy(url: string): 'IfNotPresent' | 'Always' {
  if (!isImageUrl(url)) return 'IfNotPresent';
  try {
    return parseImageUrl(url).reference === 'latest' ? 'Always' : 'IfNotPresent';
  } catch {
    // The fetch reports an invalid URL.
    return 'IfNotPresent';
  }
}
