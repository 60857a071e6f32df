"""Decoders: pictures, sound and video through Pillow and ffmpeg, bounded in pixels, seconds and bytes."""
