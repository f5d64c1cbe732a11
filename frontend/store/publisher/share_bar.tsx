// A bar that shows a share; the number is in the cell beside it.

const WIDTH = 100;

export function Bar({ share }: { share: number }) {
  return (
    <svg class="bar" viewBox={`0 0 ${WIDTH} 8`} preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width={WIDTH} height={8} />
      <rect width={Math.min(1, Math.max(0, share)) * WIDTH} height={8} />
    </svg>
  );
}
