"""What every room uses: threads, memory, progress, atomic files, HTML, short texts."""
