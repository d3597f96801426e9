"""What each capability contributes to the page."""
